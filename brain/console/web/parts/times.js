// Times as people read them. The brain's are ISO 8601, UTC; here they stand in the reader's own zone, with the date where it matters.

import { html, nothing } from '../vendor/lit-html/lit-html.js'
import { language, t } from '../words.js'
import { brainNow } from './brain_clock.js'

const DAY_MS = 86_400_000
const formats = new Map()

function format(options) {
  const key = `${language()} ${JSON.stringify(options)}`
  if (!formats.has(key)) formats.set(key, new Intl.DateTimeFormat(language() === 'zh' ? 'zh-CN' : 'en-GB', options))
  return formats.get(key)
}

/** Hours, minutes and seconds of ms since 1970. */
export function clock(ms) {
  return format({ hour: '2-digit', minute: '2-digit', second: '2-digit' }).format(ms)
}

/** A time with its date where it is not of the last day. `at`: ISO 8601, or ms since 1970. */
export function moment(at) {
  const ms = typeof at === 'number' ? at : Date.parse(at)
  if (Math.abs(brainNow() - ms) < DAY_MS) return clock(ms)
  return format({ month: 'short', day: '2-digit', hour: '2-digit', minute: '2-digit' }).format(ms)
}

/** A span in words: the two largest units are enough. */
export function span(seconds) {
  const s = Math.max(0, Math.round(seconds))
  if (s < 60) return t('span-s', { s })
  if (s < 3600) return t('span-m', { m: Math.floor(s / 60), s: s % 60 })
  if (s < 86_400) return t('span-h', { h: Math.floor(s / 3600), m: Math.floor((s % 3600) / 60) })
  return t('span-d', { d: Math.floor(s / 86_400), h: Math.floor((s % 86_400) / 3600) })
}

/** For how long, since a time. */
export function ago(at) {
  return t('ago', { span: span((brainNow() - Date.parse(at)) / 1000) })
}

/** A <time> with how long ago it was, and when on its title. */
export function time(at, { relative = false } = {}) {
  if (!at) return nothing
  return html`<time datetime=${at} title=${at}>${relative ? ago(at) : moment(at)}</time>`
}

/** A <time> with its date and seconds, for lists in which each line counts. */
export function stamp(at) {
  if (!at) return nothing
  const shown = format({ year: 'numeric', month: '2-digit', day: '2-digit', hour: '2-digit', minute: '2-digit', second: '2-digit' })
  return html`<time datetime=${at} title=${at}>${shown.format(Date.parse(at))}</time>`
}

/** Seconds since 1970 as an <input type="datetime-local"> takes them, in the reader's zone; empty: none. */
export function toLocal(seconds) {
  const ms = Number(seconds) * 1000
  if (!seconds || !Number.isFinite(ms) || Math.abs(ms) > 1e14) return ''
  return new Date(ms - new Date(ms).getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
}

/** The other way round. */
export function fromLocal(value) {
  const ms = value ? new Date(value).getTime() : NaN
  return Number.isFinite(ms) ? String(ms / 1000) : ''
}

/** From when until when, in ms since 1970; the date once where both are of one day. */
export function range(from, to) {
  const shown = format({ year: 'numeric', month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit' })
  return shown.formatRange(from, to)
}
