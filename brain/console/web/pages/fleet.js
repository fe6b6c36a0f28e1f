// The whole fleet on one canvas, or as a list: by rack, leaf, job or version, filtered, now or at a past time.

import { html, nothing, render } from '../vendor/lit-html/lit-html.js'
import { ask, draw, go } from '../app.js'
import { get, path, query } from '../net.js'
import { made } from '../parts/inert.js'
import { time } from '../parts/times.js'
import { t, word } from '../words.js'
import { filter, toggled } from './fleet/filter.js'
import { layout } from './fleet/layout.js'
import { list } from './fleet/list.js'
import { FleetMap } from './fleet/map.js'
import { byUrgency, GROUPS, model } from './fleet/model.js'
import { past } from './fleet/past.js'
import { readout, spoken } from './fleet/readout.js'
import { nodeShape } from './fleet/shapes.js'

const TYPED_MS = 250
const KINDS = ['incident.', 'run.', 'node.', 'drain.', 'operator.', 'hold.']

/** Notes that come within this time are one reading: a storm must not make the brain tell of 10,000 nodes for each. */
export const soonMs = 2000

export function title() {
  return t('nav-fleet')
}

export async function load(at, { signal, state }) {
  const when = at.query.at ?? ''
  if (when && state.data?.when === when) return state.data // what was stays
  return { when, fleet: model(await get(`fleet${query({ at: when })}`, { signal })) }
}

export function concerns(note, state) {
  return !state.at.query.at && KINDS.some((kind) => note.kind.startsWith(kind))
}

export function view(state) {
  const { fleet } = state.data
  const found = filtered(state)
  const { by, view: how } = wanted(state)
  const asList = how === 'list'
  return html`<div class="fleet">
    <div class="fleet-head"><h1>${t('nav-fleet')}</h1>
      <p class="small" role="status">${found.count === fleet.n ? t('fleet-nodes', { n: fleet.n }) : t('fleet-of', { n: found.count, all: fleet.n })}</p>
      ${found.unknown.map((one) => html`<p class="small bad-text">${t('fleet-no-key', { key: one })}</p>`)}</div>
    <form class="fleet-tools" role="search" @submit=${(event) => { event.preventDefault(); nearTo(state, found) }}>
      <label class="text">${t('fleet-filter')}<input type="search" name="q" .value=${found.text} placeholder="gpu-01* state:suspect -rack:r7" autocomplete="off" spellcheck="false"
        @input=${(event) => typed(state, event.target.value)}></label>
      <label>${t('fleet-by')}<select name="by" @change=${(event) => ask({ by: event.target.value })}>
        ${[...GROUPS, 'none'].map((one) => html`<option value=${one} ?selected=${one === by}>${t(`by-${one}`)}</option>`)}</select></label>
      <button type="button" aria-pressed=${asList ? 'true' : 'false'} @click=${() => ask({ view: asList ? '' : 'list' })}>${t('fleet-list')}</button>
    </form>
    ${legend(state, fleet, found)}
    ${fleet.n === 0 ? html`<p class="nothing">${t('fleet-empty')}</p>` : asList ? list(state, fleet, found) : map()}
    ${past(state, fleet)}
  </div>`
}

export function drawn(state) {
  const canvas = document.getElementById('fleet-map')
  if (state.own.map && state.own.map.canvas !== canvas) {
    state.own.map.end()
    state.own.map = null
  }
  if (!canvas || !state.data) return
  const { fleet } = state.data
  state.own.map ??= new FleetMap(canvas, {
    focus: (node, how) => told(state, node, how),
    open: (node) => go(`/nodes/${path(state.data.fleet.names[node])}`),
    size: () => { state.own.places = null; shown(state) },
  })
  if (state.own.fleet !== fleet) {
    state.own.fleet = fleet
    told(state, state.own.map.marked, 'hover')
  }
  shown(state)
}

export function left(state) {
  clearTimeout(state.own.settling)
  state.own.map?.end()
  clearTimeout(state.own.typing)
}

function wanted(state) {
  const { by, view: how } = state.at.query
  const { fleet } = state.data
  const known = ['rack', 'leaf'].find((one) => fleet.places[one].names.length) ?? 'none'
  return { by: by === 'none' || GROUPS.includes(by) ? by : known, view: how }
}

/** What the filter means; the same answer as long as neither text nor fleet are others. */
function filtered(state) {
  const { own, data } = state
  const text = own.text ?? state.at.query.q ?? ''
  if (own.found?.text !== text || own.found.fleet !== data.fleet) own.found = { text, fleet: data.fleet, ...filter(data.fleet, text) }
  return own.found
}

function shown(state) {
  const { own, data } = state
  const { by } = wanted(state)
  if (own.places?.fleet !== data.fleet || own.places.by !== by) own.places = { fleet: data.fleet, by, ...layout(data.fleet, by, own.map.room) }
  own.map.show({ fleet: data.fleet, places: own.places, shown: filtered(state).shown, nowhere: t('fleet-nowhere') })
}

function typed(state, text) {
  state.own.text = text
  clearTimeout(state.own.typing)
  state.own.typing = setTimeout(() => ask({ q: text }), TYPED_MS)
  draw()
}

function nearTo(state, found) {
  if (!state.own.map || !found.count) return
  const nodes = byUrgency(found.fleet, found.shown)
  state.own.map.fit(nodes)
  state.own.map.mark(nodes[0], 'key')
}

function map() {
  const zoom = (act) => (event) => act(event.target.closest('.fleet-stage').querySelector('canvas'))
  const key = (name) => zoom((canvas) => canvas.dispatchEvent(new KeyboardEvent('keydown', { key: name })))
  return html`<p class="hidden" id="fleet-keys">${t('fleet-keys')}</p>
    <div class="fleet-stage">
      <canvas id="fleet-map" tabindex="0" role="application" aria-label=${t('fleet-map')} aria-describedby="fleet-keys"></canvas>
      <div class="fleet-zoom">
        <button type="button" aria-label=${t('fleet-nearer')} @click=${key('+')}>+</button>
        <button type="button" aria-label=${t('fleet-farther')} @click=${key('-')}>−</button>
        <button type="button" aria-label=${t('fleet-whole')} @click=${key('0')}>⤢</button>
      </div>
      <div class="readout" id="fleet-readout"></div>
      <p class="hidden" id="fleet-spoken" aria-live="polite"></p>
    </div>`
}

function told(state, node, how) {
  const place = document.getElementById('fleet-readout')
  if (!place || !state.data) return
  const { fleet } = state.data
  render(node >= 0 && node < fleet.n ? made(readout(fleet, node, { link: how !== 'hover' })) : nothing, place)
  if (how === 'key' && node >= 0) document.getElementById('fleet-spoken').textContent = spoken(fleet, node)
}

function legend(state, fleet, found) {
  const counts = new Array(fleet.words.length).fill(0)
  let held = 0
  for (let node = 0; node < fleet.n; node += 1) {
    if (!found.shown[node]) continue
    counts[fleet.state[node]] += 1
    held += fleet.held[node]
  }
  const press = (key, value) => () => {
    clearTimeout(state.own.typing) // what was typed a moment ago would take the place of what is pressed now
    state.own.text = toggled(found.text, key, value)
    ask({ q: state.own.text })
  }
  const has = (key, value) => (toggled(found.text, key, value).length < found.text.length ? 'true' : 'false')
  return html`<ul class="legend" aria-label=${t('fleet-legend')}>
    ${fleet.words.map((one, n) => html`<li class=${counts[n] ? '' : 'zero'}><button type="button" data-state=${one} aria-pressed=${has('state', one)} @click=${press('state', one)}>
      ${nodeShape(one)} ${word('node-state', one)} <b>${counts[n]}</b></button></li>`)}
    ${held || has('is', 'held') === 'true' ? html`<li><button type="button" data-state="held" aria-pressed=${has('is', 'held')} @click=${press('is', 'held')}>
      <span class="held-mark" aria-hidden="true">‖</span> ${t('fleet-held')} <b>${held}</b></button></li>` : nothing}
  </ul>`
}
