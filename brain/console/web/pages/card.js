// One card by its serial number, wherever it was: places, incidents, what was done.

import { html, nothing } from '../vendor/lit-html/lit-html.js'
import { draw } from '../app.js'
import { get, path } from '../net.js'
import { incidentLine, places, runLine, some, toldAt, toldOf } from '../parts/briefs.js'
import { plots } from '../parts/plots.js'
import { t } from '../words.js'

export function title(state) {
  return state.at.args.serial
}

export async function load(at, { signal }) {
  return get(`cards/${path(at.args.serial)}`, { signal })
}

/** Is a note about what is shown? */
export function concerns(note, state) {
  const { data } = state
  return !data || note.scope.split('/').includes(data.node) || data.incidents.some((one) => one.id === note.incident)
}

export function view(state) {
  const { data } = state
  const newest = data.places[0]
  return html`<article class="node">
    <header class="head">
      <p class="line"><span class="small">${data.component.startsWith('gpu/') ? t('card-gpu') : t('card-other')}</span></p>
      <h1>${data.serial}</h1>
      <p class="where">${data.there ? t('card-in') : t('card-was-in')} <a href="/nodes/${encodeURIComponent(data.node)}">${data.node}</a> <code>${data.component}</code></p>
      ${newest?.since ? html`<p class="small">${t('told-at')} ${toldAt(newest)}</p>` : nothing}
    </header>
    <section class="card"><h2>${t('card-told')}</h2>${toldOf(data.told)}</section>
    ${data.there && data.component.startsWith('gpu/') ? plots(state, data.node, { component: data.component, incidents: data.incidents }) : nothing}
    <section class="card"><h2>${t('card-places')}</h2>${places(data.places)}</section>
    <section class="part"><h2>${t('nav-incidents')} <span class="count">${data.incidents.length || ''}</span></h2>
      ${data.incidents.length ? some(state, 'allIncidents', data.incidents, incidentLine, { most: 20, draw }) : html`<p class="good">${t('card-no-incidents')}</p>`}</section>
    ${data.runs.length ? html`<section class="card"><h2>${t('card-repairs')}</h2>${some(state, 'allRuns', data.runs, runLine, { most: 20, tag: 'plain', draw })}</section>` : nothing}
  </article>`
}
