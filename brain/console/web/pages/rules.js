// All rules, or all runbooks, with a filter. What is typed stands in the address as well, so that it can be passed on.

import { html, nothing } from '../vendor/lit-html/lit-html.js'
import { repeat } from '../vendor/lit-html/directives/repeat.js'
import { ask, draw } from '../app.js'
import { get } from '../net.js'
import { severity } from '../parts/marks.js'
import { ago, span } from '../parts/times.js'
import { t, why, whyIn, word, written } from '../words.js'

const SEVERITIES = ['P0', 'P1', 'P2', 'P3']
const ORDERS = ['place', 'often', 'late']

export function title() {
  return t('nav-rules')
}

export async function load(at, { signal, state }) {
  state.own.filter ??= at.query.q ?? ''
  return get(at.query.show === 'runbooks' ? 'runbooks' : 'rules', { signal })
}

export function concerns(note) {
  return ['incident.opened', 'incident.closed', 'run.succeeded', 'run.exhausted'].includes(note.kind)
}

export function view(state) {
  const { rules, runbooks, pack } = state.data
  const asked = state.at.query
  const found = rules ? rules.filter((one) => fits(one, state.own.filter) && (!asked.severity || one.severity === asked.severity) && (!asked.fired || one.fired))
    : runbooks.filter((one) => fits(one, state.own.filter) && (!asked.fired || one.runs))
  return html`<h1>${t('nav-rules')}</h1>
    <nav class="tabs" aria-label=${t('rules-kinds')}>
      <a href="/rules" aria-current=${rules ? 'page' : nothing}>${t('rules-tab')}</a>
      <a href="/rules?show=runbooks" aria-current=${runbooks ? 'page' : nothing}>${t('runbooks-tab')}</a>
    </nav>
    <form class="filters" @submit=${(event) => { event.preventDefault(); ask({ q: state.own.filter }) }}>
      <label>${t('rules-filter')}<input type="search" name="q" autocomplete="off" .value=${state.own.filter} placeholder="xid, nvlink, drain …"
        @input=${(event) => { state.own.filter = event.target.value; draw() }} @change=${(event) => ask({ q: event.target.value })}></label>
      ${rules ? choice('severity', t('severity'), [['', t('any')], ...SEVERITIES.map((one) => [one, word('severity', one)])], asked.severity) : nothing}
      ${choice('fired', t('rules-which'), [['', t('all')], ['yes', t(rules ? 'rules-that-fired' : 'runbooks-that-ran')]], asked.fired)}
      ${choice('order', t('rules-order'), ORDERS.map((one) => [one === 'place' ? '' : one, t(`rules-order-${one}`)]), asked.order)}
    </form>
    <p class="small" role="status">${t('rules-shown', { n: found.length, all: (rules ?? runbooks).length })} · ${t('rules-version', { pack })}</p>
    ${found.length ? nothing : html`<p class="nothing">${t('rules-none')}</p>`}
    ${grouped(found, asked.order).map(([group, members]) => html`<section class="part">${group === null ? nothing : html`<h2>${group || t('rules-made')} <span class="count">${members.length}</span></h2>`}
      <ul class="rows two">${repeat(members, (one) => one.name, rules ? ruleRow : runbookRow)}</ul></section>`)}`
}

function choice(name, label, options, chosen = '') {
  return html`<label>${label}<select name=${name} @change=${(event) => ask({ [name]: event.target.value })}>
    ${options.map(([value, text]) => html`<option value=${value} ?selected=${value === chosen}>${text}</option>`)}</select></label>`
}

function fits(one, typed = '') {
  const text = [one.name, one.cause, one.because, one.because_zh, one.runbook, one.scope, one.summary, written(one.summary), ...(one.rules ?? [])].join(' ').toLowerCase()
  return typed.toLowerCase().split(/\s+/).every((word) => text.includes(word))
}

/** [group, members]: by the file that they stand in, else one group without a name. */
function grouped(found, order) {
  const how = { often: (a, b) => (b.fired ?? b.runs) - (a.fired ?? a.runs), late: (a, b) => (b.last_at ?? '').localeCompare(a.last_at ?? '') }[order]
  if (how) return [[null, [...found].sort(how)]]
  if (!found[0] || 'runs' in found[0]) return [[null, found]]
  const groups = new Map()
  for (const one of found) {
    const group = one.source.replace(/^.*\/|\.ya?ml:\d+$/g, '')
    groups.set(group, [...(groups.get(group) ?? []), one])
  }
  return [...groups].sort(([a], [b]) => (a === '') - (b === '') || a.localeCompare(b))
}

function ruleRow(one) {
  return html`<li class="row">
    <a class="row-link" href="/rules/${encodeURIComponent(one.name)}">${severity(one.severity)} <strong>${one.name}</strong></a>
    <span class="small">${one.fired ? t('rule-fired', { n: one.fired }) : t('rule-never')}</span>
    <span class="row-where small">${one.scope} ${one.runbook ? html`→ <a href="/runbooks/${encodeURIComponent(one.runbook)}">${one.runbook}</a>` : html`→ ${t('rule-people')}`}</span>
    <span class="small">${one.healed_in_s === null ? nothing : t('healed-in', { span: span(one.healed_in_s) })}</span>
    <span class="row-why" lang=${whyIn(one)}>${why(one)}</span>
  </li>`
}

function runbookRow(one) {
  return html`<li class="row">
    <a class="row-link" href="/runbooks/${encodeURIComponent(one.name)}"><strong>${one.name}</strong></a>
    <span class="small">${one.runs ? t('runbook-ran', { n: one.runs }) : t('runbook-never')}</span>
    <span class="row-where small">${one.last_at ? ago(one.last_at) : nothing} ${one.exhausted ? html`<span class="bad-text">▲ ${t('runbook-exhausted', { n: one.exhausted })}</span>` : nothing}</span>
    <span class="small">${one.healed_in_s === null ? nothing : t('healed-in', { span: span(one.healed_in_s) })}</span>
    <span class="row-why">${written(one.summary)}</span>
  </li>`
}
