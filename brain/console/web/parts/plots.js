// Counters over time, as small plots: drawn here, in SVG. What a line shows stands as figures beneath it, too.

import { html, nothing, svg } from '../vendor/lit-html/lit-html.js'
import { draw } from '../app.js'
import { get, path, Problem, query } from '../net.js'
import { t, word } from '../words.js'

const HOURS = [6, 24, 168]
const [WIDTH, HEIGHT] = [320, 110]
const COLOURS = 8

/** The plots of a node, or of one of its GPUs. They are asked for when they are first shown; `incidents`: marked where they began. */
export function plots(state, node, { component = '', incidents = [] } = {}) {
  const key = `${node} ${component}`
  if (state.own.plots?.key !== key) ask(state, key, node, component, 24)
  const { hours, data, failed } = state.own.plots
  return html`<section class="card plots" aria-labelledby="plots" aria-busy=${data || failed ? 'false' : 'true'}><h2 id="plots">${t('plots')}</h2>
    ${data && !data.configured ? html`<p class="small">${t('plots-off')}</p>` : html`
      <div class="choices" role="group" aria-label=${t('plots-hours')}>${HOURS.map((one) => html`
        <button aria-pressed=${one === hours ? 'true' : 'false'} @click=${() => { ask(state, key, node, component, one); draw() }}>${t(`plots-${one}`)}</button>`)}</div>
      ${data ? shown(data, hours, incidents) : failed ? nothing : html`<p class="nothing">${t('plots-wait')}</p>`}`}
    ${failed || data?.failed.length ? html`<p class="small bad-text">${t('plots-failed')} ${failed || data.failed.join('; ')}</p>
      <p><button @click=${() => { ask(state, key, node, component, hours); draw() }}>${t('plots-retry')}</button></p>` : nothing}
  </section>`
}

function ask(state, key, node, component, hours) {
  const mine = { key, hours, data: null, failed: '' }
  state.own.plots = mine
  get(`nodes/${path(node)}/counters${query({ hours, component })}`).then((data) => { mine.data = data }, (error) => {
    if (!(error instanceof Problem)) throw error
    mine.failed = error.message || t('no-answer')
  }).finally(() => { if (state.own.plots === mine) draw() })
}

function shown(data, hours, incidents) {
  if (!data.panels.length) return data.failed.length ? nothing : html`<p class="small">${t('plots-none')}</p>`
  const since = Date.parse(data.since)
  const until = Date.parse(data.until)
  const marks = incidents.map((one) => (Date.parse(one.opened_at) - since) / (until - since)).filter((at) => at >= 0 && at <= 1)
  return html`${marks.length ? html`<p class="small">${t('plots-marks')}</p>` : nothing}
    <div class="plots-grid">${data.panels.map((panel) => plot(panel, { hours, marks }))}</div>`
}

/** One plot. `marks`: where something began, 0 to 1; `ends`: what stands at its ends; `told`: the sentence for who does not see it. */
export function plot(panel, { hours = 0, marks = [], ends = [t('plots-ago', { hours }), t('plots-now')], told: sentence = 'plots-told' }) {
  const name = word('plot', panel.name)
  const known = panel.lines.flatMap((line) => line.values.filter((value) => value !== null))
  const [least, most] = [Math.min(...known), Math.max(...known)]
  // From zero where that leaves something to see: a temperature between 60 and 62 is a flat line, and so it should be
  const [low, high] = [Math.min(0, least), most > 0 ? most * 1.05 : 1]
  const told = t(sentence, { name, hours, since: ends[0], until: ends[1], least: figure(least), most: figure(most), unit: panel.unit })
  return html`<figure class="plot"><figcaption><strong>${name}</strong> <span class="small">${panel.unit}</span></figcaption>
    <svg viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label=${told}>
      <line class="plot-axis" x1="0" y1=${y(0, low, high)} x2=${WIDTH} y2=${y(0, low, high)}></line>
      ${marks.map((at) => svg`<line class="plot-mark" x1=${at * WIDTH} y1="0" x2=${at * WIDTH} y2=${HEIGHT}></line>`)}
      ${panel.lines.map((line, n) => runs(line.values).map((run) => svg`<polyline class="plot-line c${n % COLOURS}" points=${points(run, line.values.length, low, high)}></polyline>`))}
    </svg>
    <p class="plot-ends small"><span>${ends[0]}</span><span>${figure(least)} – ${figure(most)}</span><span>${ends[1]}</span></p>
    <details><summary>${t('plots-figures')}</summary><div class="wide" role="region" tabindex="0" aria-label=${name}><table>
      <thead><tr><th scope="col">${t('plots-line')}</th><th scope="col">${t('plots-least')}</th><th scope="col">${t('plots-most')}</th><th scope="col">${t('plots-last')}</th></tr></thead>
      <tbody>${panel.lines.map((line, n) => row(line, n))}</tbody></table></div>
      ${panel.more ? html`<p class="small">${t('plots-more', { n: panel.more })}</p>` : nothing}</details></figure>`
}

function row(line, n) {
  const known = line.values.filter((value) => value !== null)
  return html`<tr><th scope="row"><svg class="plot-key" viewBox="0 0 14 4" width="14" height="4" aria-hidden="true"><line class="plot-line c${n % COLOURS}" x1="0" y1="2" x2="14" y2="2"></line></svg> ${line.label || t('plots-node')}</th>
    <td>${figure(Math.min(...known))}</td><td>${figure(Math.max(...known))}</td><td>${figure(known.at(-1))}</td></tr>`
}

/** The parts of a line without a hole: [[step, value], ...]. */
function runs(values) {
  const found = [[]]
  values.forEach((value, step) => {
    if (value === null) found.push([])
    else found.at(-1).push([step, value])
  })
  return found.filter((run) => run.length).map((run) => (run.length === 1 ? [run[0], [run[0][0] + 0.5, run[0][1]]] : run))
}

function points(run, steps, low, high) {
  return run.map(([step, value]) => `${((step / Math.max(1, steps - 1)) * WIDTH).toFixed(1)},${y(value, low, high).toFixed(1)}`).join(' ')
}

function y(value, low, high) {
  return HEIGHT - 3 - ((value - low) / (high - low)) * (HEIGHT - 6)
}

function figure(value) {
  if (value === 0 || Math.abs(value) >= 100) return String(Math.round(value))
  return String(Number(value.toPrecision(3)))
}
