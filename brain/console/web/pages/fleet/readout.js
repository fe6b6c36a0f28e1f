// What is known about the node in focus, in two lines.

import { html, nothing } from '../../vendor/lit-html/lit-html.js'
import { severity } from '../../parts/marks.js'
import { t, word } from '../../words.js'
import { GROUPS, incidentOf, placeOf } from './model.js'
import { nodeState } from './shapes.js'

/** The box in the corner of the map. `link`: one cannot click on what is under a finger, so there is a link. */
export function readout(fleet, node, { link }) {
  const name = fleet.names[node]
  const incident = incidentOf(fleet, node)
  return html`<div>
    <span><strong>${name}</strong> ${nodeState(fleet.words[fleet.state[node]])}${fleet.held[node] ? html` · ‖ ${t('fleet-held')}` : nothing}
      ${incident ? html`<br>${severity(incident.severity)} ${incident.cause}` : nothing}
      <span class="small">${lines(fleet, node).join(' · ')}</span></span>
    ${link ? html`<a class="button" href="/nodes/${encodeURIComponent(name)}">${t('fleet-open')}</a>` : nothing}
  </div>`
}

/** The same as one sentence, for a screen reader. */
export function spoken(fleet, node) {
  const incident = incidentOf(fleet, node)
  return [
    fleet.names[node],
    word('node-state', fleet.words[fleet.state[node]]),
    fleet.held[node] ? t('fleet-held') : '',
    incident ? `${incident.severity} ${incident.cause}` : '',
    ...lines(fleet, node),
  ].filter(Boolean).join(', ')
}

function lines(fleet, node) {
  const places = GROUPS.filter((by) => placeOf(fleet, by, node)).map((by) => `${t(`by-${by}`)} ${placeOf(fleet, by, node)}`)
  const hit = fleet.cards.get(node) ?? []
  const gpus = fleet.gpus[node] > 0 ? [t('fleet-gpus', { n: fleet.gpus[node] })] : []
  return [...places, ...gpus, ...hit.map((one) => `${one.card} ${word('node-state', fleet.words[one.state])}`)]
}
