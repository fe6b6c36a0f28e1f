// Reports: the hand-over of a shift, a week, a month; as a page, as CSV, and as one file for mail.

import { html, nothing } from '../vendor/lit-html/lit-html.js'
import { ask } from '../app.js'
import { get, query } from '../net.js'
import { brainNow } from '../parts/brain_clock.js'
import { period, report } from '../parts/report_view.js'
import { fromLocal, toLocal } from '../parts/times.js'
import { language, t } from '../words.js'

const HOUR = 3600
const SPANS = { '8h': 8 * HOUR, '12h': 12 * HOUR, week: 7 * 24 * HOUR, month: 30 * 24 * HOUR }
const SHIFTS = ['8h', '12h']
const LISTED = 100 // of each list of a hand-over

export function title() {
  return t('nav-reports')
}

export async function load(at, { signal, state }) {
  const { from, to, shift, span } = asked(at)
  const hours = (to - from) / HOUR
  const own = get(`reports${query({ from, to })}`, { signal })
  if (!shift) {
    const [now, before] = await Promise.all([own, get(`reports${query({ from: 2 * from - to, to: from })}`, { signal })])
    const known = now.reaches && Date.parse(now.reaches) <= (2 * from - to) * 1000 // of less than all of it nobody can say what was better
    return { report: now, before: known ? before : undefined, from, to, span }
  }
  const [now, needs, notes, status] = await Promise.all([
    own,
    get(`needs${query({ hours, limit: LISTED })}`, { signal }),
    get(`notes${query({ kind: 'operator.*', since: from, limit: LISTED })}`, { signal }),
    get('status', { signal }),
  ])
  state.status = status
  return { report: now, from, to, span, shift: { needs, notes, holds: status.holds } }
}

export const soonMs = 30_000

/** A hand-over follows what happens; longer reports are read anew with the minute. */
export function concerns(note, state) {
  return Boolean(state.data?.shift) && (note.kind.startsWith('incident.') || note.kind.startsWith('operator.'))
}

export function view(state) {
  const { data } = state
  const given = state.at.query
  return html`<h1>${t('nav-reports')}</h1>
    <div class="choices report-spans" role="group" aria-label=${t('report-span')}>${Object.keys(SPANS).map((one) => html`
      <button aria-pressed=${one === data.span ? 'true' : 'false'} @click=${() => ask({ span: one, from: '', to: '' })}>${t(`report-${one}`)}</button>`)}</div>
    <details class="report-range" ?open=${Boolean(given.from || given.to)}><summary>${t('report-other')}</summary>
      <form class="filters" @submit=${submitted}>
        <label>${t('since')}<input type="datetime-local" name="from" required .value=${toLocal(data.from)}></label>
        <label>${t('report-to')}<input type="datetime-local" name="to" required .value=${toLocal(data.to)}></label>
        <button type="submit">${t('show')}</button>
      </form></details>
    <p class="report-period">${period(data)}</p>
    <p class="actions">
      <a class="button main" data-file download=${`gpuward-${state.status?.cell ?? ''}-${new Date(data.to * 1000).toISOString().slice(0, 10)}.html`} href=${file(data)}>${t('report-file')}</a>
      <a class="button" download href="/api/v1/reports${query({ from: data.from, to: data.to, format: 'csv' })}">${t('report-csv')}</a></p>
    ${report(state)}`
}

/** The brain makes the file, as it does for mails; in the reader's language, by their clocks. */
function file({ from, to, shift }) {
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions()
  return `/api/v1/reports${query({ from, to, format: 'html', language: language(), zone: timeZone, hand_over: shift ? 'true' : '' })}`
}

function submitted(event) {
  event.preventDefault()
  const { from, to } = Object.fromEntries(new FormData(event.target))
  ask({ from: fromLocal(from), to: fromLocal(to), span: '' })
}

/** The time that the address asks for, in seconds since 1970; up to the end of this minute, so that a report has a name of its own. */
function asked(at) {
  const now = Math.ceil(brainNow() / 60_000) * 60
  const to = Math.min(Number(at.query.to) || now, now)
  const from = Number(at.query.from) || 0
  if (from && from < to) return { from, to, span: '', shift: false }
  const span = at.query.span in SPANS ? at.query.span : '8h'
  return { from: to - SPANS[span], to, span, shift: SHIFTS.includes(span) }
}
