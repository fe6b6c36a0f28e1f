// All incidents, by what is asked for in the address.

import { html, nothing } from '../vendor/lit-html/lit-html.js'
import { repeat } from '../vendor/lit-html/directives/repeat.js'
import { ask } from '../app.js'
import { get, query } from '../net.js'
import { incidentRow } from '../parts/rows.js'
import { t, word } from '../words.js'

const STATES = ['needs_human', 'open', 'healing', 'settling', 'recovered', 'closed', 'explained']
const SEVERITIES = ['P0', 'P1', 'P2', 'P3']

export function title() {
  return t('nav-incidents')
}

export async function load(at, { signal }) {
  const { state, severity, cause, node, all, cursor } = at.query
  return get(`incidents${query({ state, severity, cause, node, all: all || (state ? 'true' : ''), cursor, limit: 100 })}`, { signal })
}

export function concerns(note) {
  return note.kind.startsWith('incident.') || note.kind.startsWith('run.') || note.kind.startsWith('page.')
}

export function view(state) {
  const { incidents, next } = state.data
  const asked = state.at.query
  return html`<h1>${t('nav-incidents')}</h1>
    <form class="filters" @submit=${(event) => { event.preventDefault(); ask({ ...Object.fromEntries(new FormData(event.target)), cursor: '' }) }}>
      <label>${t('state')}<select name="state" @change=${submit}>${option('', t('any'), asked.state)}${STATES.map((one) => option(one, word('state', one), asked.state))}</select></label>
      <label>${t('severity')}<select name="severity" @change=${submit}>${option('', t('any'), asked.severity)}${SEVERITIES.map((one) => option(one, one, asked.severity))}</select></label>
      <label>${t('cause')}<input name="cause" .value=${asked.cause ?? ''} placeholder="gpu-*"></label>
      <label>${t('node')}<input name="node" .value=${asked.node ?? ''} placeholder="gpu-01*"></label>
      <label>${t('which')}<select name="all" @change=${submit}>${option('', t('open-ones'), asked.all)}${option('true', t('all'), asked.all)}</select></label>
      <button type="submit">${t('show')}</button>
    </form>
    ${incidents.length ? html`<ul class="rows">${repeat(incidents, (one) => one.id, incidentRow)}</ul>` : html`<p class="nothing">${t('no-incidents')}</p>`}
    ${next ? html`<p><button @click=${() => ask({ cursor: next })}>${t('older')}</button></p>` : nothing}
    ${asked.cursor ? html`<p><button @click=${() => ask({ cursor: '' })}>${t('newest')}</button></p>` : nothing}`
}

function submit(event) {
  event.target.form.requestSubmit()
}

function option(value, label, chosen) {
  return html`<option value=${value} ?selected=${value === (chosen ?? '')}>${label}</option>`
}
