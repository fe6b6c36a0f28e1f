// Back in time along the log: a slider whose steps are fine near now and coarse long ago.

import { html, nothing } from '../../vendor/lit-html/lit-html.js'
import { ask } from '../../app.js'
import { brainNow } from '../../parts/brain_clock.js'
import { ago, moment } from '../../parts/times.js'
import { t } from '../../words.js'

const STEPS = 1000
const CURVE = 3
const SETTLED_MS = 150
const SHORT_S = 300

/** The slider, and how to come back to now. `at` in the address: seconds since 1970. */
export function past(state, fleet) {
  const { own } = state
  if (fleet.since === null) return nothing
  const now = brainNow() / 1000
  const at = own.sliding ?? Number(state.at.query.at || 0)
  const begin = Math.min(fleet.since, now - 1)
  const place = at ? Math.round(STEPS * (1 - Math.cbrt(Math.max(0, Math.min(1, (now - at) / (now - begin)))))) : STEPS
  const when = at ? moment(at * 1000) : t('past-now')
  const slide = (event) => {
    const n = Number(event.target.value)
    const wanted = now - (now - begin) * (1 - n / STEPS) ** CURVE
    to(state, n >= STEPS ? 0 : wanted, begin)
  }
  const by = (seconds) => () => {
    const wanted = (at || now) + seconds
    to(state, wanted >= now - 1 ? 0 : wanted, begin)
  }
  return html`<section class=${at ? 'past then' : 'past'} aria-label=${t('past')}>
    <p>${at ? t('past-as-of', { when, ago: ago(new Date(at * 1000).toISOString()) }) : t('past-now')}</p>
    <input type="range" min="0" max=${STEPS} .value=${String(place)} aria-label=${t('past')} aria-valuetext=${when} @input=${slide}>
    <span class="steps">
      <button type="button" @click=${by(-SHORT_S)}>${t('past-earlier')}</button>
      <button type="button" ?disabled=${!at} @click=${by(SHORT_S)}>${t('past-later')}</button>
      <button type="button" class=${at ? 'main' : ''} ?disabled=${!at} @click=${() => to(state, 0, begin)}>${t('past-back')}</button>
    </span>
  </section>`
}

/** Goes to a time (seconds since 1970; 0: now), once the hand rests. */
function to(state, at, begin) {
  const { own } = state
  own.sliding = at ? Math.max(Math.ceil(begin), Math.round(at)) : 0
  clearTimeout(own.settling)
  own.settling = setTimeout(async () => {
    const value = own.sliding
    own.sliding = undefined
    await ask({ at: value || '' })
  }, SETTLED_MS)
}
