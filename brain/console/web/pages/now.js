// What needs a person, what heals by itself, what was. Until the brain says it in one answer: from the incidents.

import { html, nothing } from '../vendor/lit-html/lit-html.js'
import { repeat } from '../vendor/lit-html/directives/repeat.js'
import { get } from '../net.js'
import { incidentRow } from '../parts/rows.js'
import { t } from '../words.js'

export function title() {
  return t('nav-now')
}

export async function load(at, { signal }) {
  return get('incidents?all=true&limit=200', { signal })
}

export function concerns() {
  return true
}

export function view(state) {
  const { incidents } = state.data
  const needs = incidents.filter((one) => one.state === 'needs_human' || (one.state === 'open' && ['P0', 'P1'].includes(one.severity)))
  const heals = incidents.filter((one) => ['healing', 'settling', 'recovered', 'open'].includes(one.state) && !needs.includes(one))
  const was = incidents.filter((one) => one.state === 'closed').slice(0, 20)
  return html`<h1 class="hidden">${t('nav-now')}</h1>
    ${part('now-needs', needs, t('now-needs-none'))}${part('now-heals', heals)}${part('now-was', was)}`
}

function part(label, list, none = '') {
  if (!list.length && !none) return nothing
  return html`<section class="part"><h2>${t(label)} <span class="count">${list.length || ''}</span></h2>
    ${list.length ? html`<ul class="rows">${repeat(list, (one) => one.id, incidentRow)}</ul>` : html`<p class="good">${none}</p>`}</section>`
}
