// The page of whoever is on call: what needs a person, what heals by itself, what was. One answer of the brain.

import { html, nothing } from '../vendor/lit-html/lit-html.js'
import { repeat } from '../vendor/lit-html/directives/repeat.js'
import { get } from '../net.js'
import { exactly } from '../parts/approval.js'
import { scopeMark, severity, stateMark } from '../parts/marks.js'
import { span, time } from '../parts/times.js'
import { sayButton } from '../parts/verbs.js'
import { t, word } from '../words.js'

export const soonMs = 2000 // of a thousand incidents the brain makes each answer anew; the first note is seen at once
const PLAIN = ['heartbeat', 'access.']
// Here only what is most likely meant; the rest stands on the incident's page.
const FIRST = ['approve', 'deny', 'ack', 'reset', 'release']

export function title(state) {
  const n = state.data?.people_count
  return n ? `(${n}) ${t('nav-now')}` : t('nav-now')
}

export async function load(at, { signal }) {
  return get('needs?hours=24&limit=200', { signal })
}

export function concerns(note) {
  return !PLAIN.some((prefix) => note.kind.startsWith(prefix))
}

export function view(state) {
  const { people, people_count: count, healing, healing_count: healingCount, healed, healed_more: more } = state.data
  return html`<h1 class="hidden">${t('nav-now')}</h1>
    <section class="part" aria-labelledby="needs"><h2 id="needs">${t('now-needs')} <span class="count">${count || ''}</span></h2>
      ${people.length ? html`<ul class="rows">${repeat(people, (one) => one.id, (one) => need(state, one))}</ul>` : html`${sure(state) ? html`<p class="good">✓ ${t('now-needs-none')}</p>` : html`<p class="nothing">${t('now-not-known')}</p>`}`}
      ${count > people.length ? html`<p><a href="/incidents">${t('now-more', { n: count - people.length })}</a></p>` : nothing}
    </section>
    ${healing.length ? html`<section class="part" aria-labelledby="heals"><h2 id="heals">${t('now-heals')} <span class="count">${healingCount}</span></h2>
      <ul class="rows">${repeat(healing, (one) => one.id, (one) => need(state, one))}</ul></section>` : nothing}
    <section class="part" aria-labelledby="was"><h2 id="was">${t('now-was')} <span class="count">${healed.length}${more ? '+' : ''}</span></h2>
      ${healed.length ? html`<ul class="rows">${repeat(healed, (one) => one.id, was)}</ul>` : html`<p class="nothing">${t('now-was-none')}</p>`}
    </section>
    ${holds(state)}`
}

/** Does the brain know how things stand? While it reads the log, or without its broker, it does not. */
function sure(state) {
  return state.connected && (state.status?.caught_up ?? false) && state.status.connected
}

function need(state, one) {
  const page = one.id.startsWith('inc-') ? `/incidents/${encodeURIComponent(one.id)}` : ''
  const first = one.kinds[0]?.startsWith('hold_') ? [...FIRST, 'hold'] : FIRST
  const verbs = one.kinds.length ? one.verbs.filter((verb) => first.includes(verb.verb)) : []
  return html`<li class="row ${one.kinds.length ? 'wants' : ''}">
    ${page ? html`<a class="row-link" href=${page}>${severity(one.severity)} <strong>${one.cause || word('need', one.kinds[0])}</strong></a>`
      : html`<span class="row-link">${severity(one.severity)} <strong>${word('need', one.kinds[0])}</strong></span>`}
    ${one.state ? stateMark(one.kinds[0] === 'approval' ? 'approval' : one.state, one.kinds[0] === 'approval' ? 'run' : 'state') : html`<span></span>`}
    <span class="row-where">${scopeMark(one.scope, one.node)}</span>
    <span class="small">${time(one.since, { relative: true })}${one.acked_by ? html` · ✓ ${one.acked_by}` : nothing}${one.kinds[0] === 'hold_ends' ? html` · ${t('until')} ${time(one.until)}` : nothing}</span>
    ${one.approval ? html`<div class="row-wide">${exactly(one.approval)}</div>` : html`<p class="row-text">${one.text}</p>`}
    ${one.kinds.length > 1 ? html`<p class="row-wide small">${one.kinds.map((kind) => word('need', kind)).join(' · ')}</p>` : nothing}
    ${verbs.length ? html`<p class="row-wide actions">${repeat(verbs, (verb) => verb.verb, (verb, n) => sayButton(state, verb, { main: n === 0, approval: one.approval, what: one.text }))}</p>` : nothing}
  </li>`
}

function was(one) {
  return html`<li class="row">
    <a class="row-link" href="/incidents/${encodeURIComponent(one.id)}">${severity(one.severity)} <strong>${one.cause}</strong></a>
    <span class="state closed"><span aria-hidden="true">✓</span> ${one.runbook ? t('healed-by', { runbook: one.runbook }) : t('went-away')}</span>
    <span class="row-where">${scopeMark(one.scope, one.node)}</span>
    <span class="small">${time(one.closed_at)} · ${span((Date.parse(one.closed_at) - Date.parse(one.opened_at)) / 1000)}</span>
    <p class="row-text">${one.text}</p>
  </li>`
}

function holds(state) {
  const list = state.status?.holds ?? []
  if (!list.length) return nothing
  return html`<section class="part" aria-labelledby="holds"><h2 id="holds">${t('holds')} <span class="count">${list.length}</span></h2>
    <ul class="rows">${repeat(list, (one) => one.id, (one) => html`<li class="row"><span class="row-link"><strong>${scopeMark(one.scope)}</strong></span>
      <span class="small">${one.until ? html`${t('until')} ${time(one.until)}` : t('until-released')}</span>
      <p class="row-text">${one.who}: ${one.why}</p>
      <p class="row-wide actions">${sayButton(state, { verb: 'release', args: { scope: one.id }, asks: [] }, { what: t('release-what', one) })}</p></li>`)}</ul></section>`
}
