// What the GPUs have used in a report's time, by tenant: power over time, a table, and how much of it is known.

import { html, nothing } from '../vendor/lit-html/lit-html.js'
import { draw } from '../app.js'
import { get, Problem, query } from '../net.js'
import { t, word } from '../words.js'
import { plot } from './plots.js'
import { moment } from './times.js'

const PLOTTED = 8 // tenants, by colour

/** What is known of it: { data, failed }, asked for when it is first shown; `data` null: not yet. */
export function used(state, { from, to }) {
  const key = `${from} ${to}`
  if (state.own.energy?.key !== key) ask(state, key, from, to)
  return state.own.energy
}

function ask(state, key, from, to) {
  const mine = { key, data: state.own.energy?.data ?? null, failed: '' }
  state.own.energy = mine
  get(`reports/energy${query({ from, to })}`).then((data) => { mine.data = data }, (error) => {
    if (!(error instanceof Problem)) throw error
    mine.failed = error.message || t('no-answer')
  }).finally(() => { if (state.own.energy === mine) draw() })
}

/** The section; nothing where no Prometheus is configured: what nobody knows says so. */
export function energy({ data, failed }) {
  if (data && !data.configured) return nothing
  const wrong = failed || data?.failed.join('; ')
  return html`<section class="card energy" aria-busy=${data || failed ? nothing : 'true'}><h2 id="report-energy">${t('report-energy')}</h2>
    ${data ? shown(data) : failed ? nothing : html`<p class="nothing">${t('plots-wait')}</p>`}
    ${wrong ? html`<p class="small bad-text">${t('plots-failed')} ${wrong}</p>` : nothing}</section>`
}

function shown(data) {
  if (!data.tenants.length) return data.failed.length ? nothing : html`<p class="small">${t('report-energy-none')}</p>`
  const most = Math.max(...data.tenants.map((one) => one.kwh))
  const hours = data.step_s / 3600
  const lines = data.tenants.slice(0, PLOTTED).map((one) => ({
    label: name(one), values: one.values.map((value) => (value === null ? null : value / hours)),
  }))
  const panel = { name: 'tenant-power', unit: 'kW', lines, more: data.tenants.length - lines.length + data.more }
  return html`<p><strong>${kwh(data.kwh)}</strong>
      ${data.measured === null ? nothing : html`<span class="small">${t('report-energy-measured', { share: share(data.measured), gpus: data.gpus })}</span>`}</p>
    <div class="plots-grid">${plot(panel, { ends: [moment(data.since), moment(data.until)], told: 'plots-told-then' })}</div>
    <div class="wide" role="region" aria-labelledby="report-energy" tabindex="0"><table><thead><tr>
      ${['tenant', 'energy', '', 'share', 'use'].map((one) => (one ? html`<th scope="col">${word('report-figure', one)}</th>` : html`<td></td>`))}</tr></thead>
    <tbody>${data.tenants.map((one) => html`<tr><th scope="row">${name(one)}</th><td>${kwh(one.kwh)}</td>
      <td><svg class="bar-of" viewBox="0 0 100 10" width="100" height="10" preserveAspectRatio="none" aria-hidden="true"><rect width=${Math.max(1, Math.round((100 * one.kwh) / (most || 1)))} height="10" rx="1"></rect></svg></td>
      <td>${share(one.share)}</td><td>${share(one.use)}</td></tr>`)}</tbody></table></div>
    ${data.more ? html`<p class="small">${t('plots-more', { n: data.more })}</p>` : nothing}
    <p><a class="button" download href="/api/v1/reports/energy${query({ from: Date.parse(data.since) / 1000, to: Date.parse(data.until) / 1000, format: 'csv' })}">${t('report-energy-csv')}</a></p>`
}

function name(one) {
  return one.tenant || t('report-energy-nobody')
}

function share(value) {
  return value === null ? '–' : `${Math.round(100 * value)} %`
}

function kwh(value) {
  if (value >= 1000) return `${(value / 1000).toFixed(2)} MWh`
  return `${value.toFixed(value < 10 ? 2 : 1)} kWh`
}
