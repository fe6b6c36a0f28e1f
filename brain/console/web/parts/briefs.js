// Lines of a node's and of a card's page: incidents and runs in a line each, places, and what a node told of a part.

import { html, nothing } from '../vendor/lit-html/lit-html.js'
import { t } from '../words.js'
import { scopeMark, severity, stateMark } from './marks.js'
import { span, time } from './times.js'

const ORDER = ['product', 'model', 'serial', 'guid', 'uuid', 'firmware', 'vbios', 'board', 'bdf', 'netdevs', 'gpus', 'gpu_models', 'driver', 'gpu_vbios', 'nics', 'nic_firmware', 'kernel', 'bios', 'cpus', 'memory_mb']

/** When something was first and last told (ISO 8601). */
export function toldAt({ since, seen }) {
  return html`${time(since)}${seen && seen !== since ? html` – ${time(seen)}` : nothing}`
}

/** An incident in a line (IncidentBrief of the API). */
export function incidentLine(one) {
  const lasted = one.closed_at ? span((Date.parse(one.closed_at) - Date.parse(one.opened_at)) / 1000) : ''
  return html`<li class="row">
    <a class="row-link" href="/incidents/${encodeURIComponent(one.id)}">${severity(one.severity)} <strong>${one.cause}</strong></a>
    ${stateMark(one.state)}
    <span class="row-where">${scopeMark(one.scope)}</span>
    <span class="small">${time(one.opened_at)}${lasted ? html` · ${lasted}` : nothing}</span>
    ${one.closed_why ? html`<span class="row-why" title=${one.closed_why}>${one.closed_why}</span>` : nothing}
  </li>`
}

/** A run in a line (RunBrief of the API). */
export function runLine(one) {
  return html`<li>
    ${stateMark(one.state, 'run')} <a href="/runbooks/${encodeURIComponent(one.runbook)}">${one.runbook}</a> · ${scopeMark(one.scope)}
    <span class="small">${time(one.started_at)}${one.ended_at ? html` – ${time(one.ended_at)}` : nothing} ·
      <a href="/incidents/${encodeURIComponent(one.incident)}">${one.incident}</a></span>
    ${one.why ? html`<br><span class="small">${one.why}</span>` : nothing}
  </li>`
}

/** Where a card was, the newest first (PartPlace of the API). `here`: a node that needs no link. */
export function places(list, here = '') {
  return html`<ol class="plain places">${list.map((one) => html`<li>
    ${one.node === here ? html`<strong>${one.node}</strong>` : html`<a href="/nodes/${encodeURIComponent(one.node)}">${one.node}</a>`}
    <code>${one.component}</code> <span class="small">${toldAt(one)}</span></li>`)}</ol>`
}

/** What a node told: names and values, without what is empty; what people look for first. */
export function toldOf(told, without = []) {
  const place = (name) => (ORDER.includes(name) ? ORDER.indexOf(name) : ORDER.length)
  const given = Object.entries(told).filter(([name, value]) => value !== '' && value !== null && !without.includes(name))
    .sort(([a], [b]) => place(a) - place(b))
  return html`<dl class="told">${given.map(([name, value]) => html`<div><dt>${fieldWord(name)}</dt><dd>${String(value)}</dd></div>`)}</dl>`
}

/** Some lines of a long list, and a button for all of them. `name`: under which `own` remembers it. */
export function some(state, name, list, line, { most = 8, tag = 'rows', draw }) {
  const all = state.own[name]
  return html`<ul class=${tag}>${list.slice(0, all ? undefined : most).map(line)}</ul>
    ${list.length > most && !all ? html`<button @click=${() => { state.own[name] = true; draw() }}>${t('show-all', { n: list.length })}</button>` : nothing}`
}

function fieldWord(name) {
  const key = `told-${name.replaceAll('_', '-')}`
  const text = t(key)
  return text === key ? name : text
}
