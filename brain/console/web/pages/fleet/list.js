// The fleet as a table: for screen readers, and for whoever rather reads. The same filter, the most urgent first.

import { html, nothing } from '../../vendor/lit-html/lit-html.js'
import { draw } from '../../app.js'
import { severity } from '../../parts/marks.js'
import { t } from '../../words.js'
import { byUrgency, incidentOf, placeOf } from './model.js'
import { nodeState } from './shapes.js'

const PAGE = 100

/** The table of the nodes that the filter means. */
export function list(state, fleet, found) {
  if (found.order === undefined) found.order = byUrgency(fleet, found.shown)
  const rows = found.order.slice(0, state.own.rows ?? PAGE)
  if (!rows.length) return html`<p class="nothing">${t('fleet-none')}</p>`
  const more = () => {
    state.own.rows = (state.own.rows ?? PAGE) + PAGE
    draw()
  }
  return html`<table class="nodes">
      <caption>${t('fleet-table', { n: rows.length, all: found.count })}</caption>
      <thead><tr><th scope="col">${t('node')}</th><th scope="col">${t('state')}</th><th scope="col">${t('nav-incidents')}</th>
        <th scope="col" class="wide">${t('by-rack')}</th><th scope="col" class="wide">${t('by-leaf')}</th><th scope="col" class="wide">${t('by-job')}</th></tr></thead>
      <tbody>${rows.map((node) => row(fleet, node))}</tbody>
    </table>
    ${found.count > rows.length ? html`<p><button type="button" @click=${more}>${t('fleet-more', { n: Math.min(PAGE, found.count - rows.length) })}</button></p>` : nothing}`
}

function row(fleet, node) {
  const name = fleet.names[node]
  const incident = incidentOf(fleet, node)
  return html`<tr>
    <th scope="row"><a href="/nodes/${encodeURIComponent(name)}">${name}</a></th>
    <td>${nodeState(fleet.words[fleet.state[node]])}${fleet.held[node] ? html`<br><span class="small">‖ ${t('fleet-held')}</span>` : nothing}</td>
    <td>${incident ? html`<a href="/incidents/${encodeURIComponent(incident.id)}">${severity(incident.severity)} ${incident.cause}</a>` : nothing}</td>
    ${['rack', 'leaf', 'job'].map((by) => html`<td class="wide">${placeOf(fleet, by, node)}</td>`)}
  </tr>`
}
