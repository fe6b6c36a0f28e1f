// The audit: who did what, and what came of it. What is asked for stands in the address; new notes come on top while one reads there.

import { html, nothing } from '../vendor/lit-html/lit-html.js'
import { repeat } from '../vendor/lit-html/directives/repeat.js'
import { ask, draw, load as reload } from '../app.js'
import { get, query } from '../net.js'
import { scopeMark } from '../parts/marks.js'
import { fromLocal, stamp, toLocal } from '../parts/times.js'
import { t, word } from '../words.js'

const KINDS = ['operator.*', 'access.*', 'page.*', 'incident.*', 'run.*', 'step.*', 'symptom.*', 'node.*', 'hold.*', 'brain.*']
const LIMIT = 100
const AWAY_PX = 160 // scrolled so far, one reads: nothing may move

export function title() {
  return t('nav-audit')
}

/** While somebody reads further down, what is new is only counted. */
export async function load(at, { signal, state }) {
  const found = await get(`notes${query({ ...asked(at), cursor: at.query.cursor, limit: LIMIT })}`, { signal })
  const here = JSON.stringify(at.query)
  if (state.own.here === here && state.data && scrollY > AWAY_PX && !state.own.follow) {
    const known = new Set(state.data.notes.map((one) => one.id))
    state.own.fresh = found.notes.findIndex((one) => known.has(one.id))
    if (state.own.fresh < 0) state.own.fresh = found.notes.length
    return state.data
  }
  Object.assign(state.own, { here, fresh: 0, follow: false })
  return found
}

/** On the first page each note that fits. */
export function concerns(note, state) {
  const { kind, incident, run, scope, who, cursor, until } = state.at.query
  if (cursor || until) return false
  const people = (note.who ?? '').split(' and ')
  return fits(kind, note.kind) && (!incident || incident === note.incident) && (!run || run === note.run) && fits(scope, note.scope)
    && (!who || people.some((one) => fits(who, one) && one))
}

export function view(state) {
  const { notes, next } = state.data
  const { cursor } = state.at.query
  return html`<h1>${t('nav-audit')}</h1>
    ${filters(state.at.query)}
    ${cursor ? html`<p><button @click=${() => ask({ cursor: '' })}>${t('newest')}</button></p>` : nothing}
    <p class="fresh" role="status">${state.own.fresh ? html`<button class="main" @click=${() => follow(state)}>↑ ${t('audit-fresh', { n: state.own.fresh })}</button>` : nothing}</p>
    ${notes.length ? html`<ol class="audit">${repeat(notes, (one) => one.id, row)}</ol>` : html`<p class="nothing">${t('audit-none')}</p>`}
    ${next ? html`<p class="actions"><button @click=${() => older(next)}>${t('older')}</button></p>` : nothing}`
}

function filters(given) {
  const kinds = given.kind && !KINDS.includes(given.kind) ? [...KINDS, given.kind] : KINDS
  return html`<form class="filters" @submit=${submitted}>
      <label>${t('audit-kind')}<select name="kind" @change=${(event) => event.target.form.requestSubmit()}>
        <option value="" ?selected=${!given.kind}>${t('any')}</option>
        ${kinds.map((one) => html`<option value=${one} ?selected=${one === given.kind}>${word('audit-kind', one.replace('.*', ''))}</option>`)}</select></label>
      ${field('who', t('audit-who'), given.who, 'ann')}
      <button type="submit">${t('show')}</button>
      <a class="button" download href="/api/v1/notes.ndjson${query(asked({ query: given }))}">${t('audit-export')}</a>
      <details class="audit-more" ?open=${Boolean(given.scope || given.incident || given.run || given.since || given.until)}>
        <summary>${t('audit-more')}</summary><div class="filters">
        ${field('scope', t('scope'), given.scope, 'node/gpu-01*')}
        ${field('incident', t('audit-incident'), given.incident, 'inc-…')}
        ${field('run', t('audit-run'), given.run, 'inc-….r1')}
        <label>${t('since')}<input type="datetime-local" name="since" .value=${toLocal(given.since)}></label>
        <label>${t('audit-until')}<input type="datetime-local" name="until" .value=${toLocal(given.until)}></label>
      </div></details>
    </form>`
}

function field(name, label, value, example) {
  return html`<label>${label}<input name=${name} .value=${value ?? ''} placeholder=${example} autocomplete="off" spellcheck="false" maxlength="300"></label>`
}

function row(one) {
  return html`<li>
    <span class="audit-when">${stamp(one.at)}</span>
    <span class="audit-who">${one.who ? html`<button class="link" title=${t('audit-only', { what: one.who })} @click=${() => ask({ who: one.who.split(' and ')[0], cursor: '' })}>${one.who}</button>` : nothing}</span>
    <span class="audit-what"><span class="audit-kind">${word('note', one.kind)}</span> ${one.text}
      <span class="small audit-where">${one.scope ? scopeMark(one.scope) : nothing}
        ${one.incident ? html`<a href="/incidents/${encodeURIComponent(one.incident)}">${one.incident}</a>` : nothing}</span></span>
  </li>`
}

function submitted(event) {
  event.preventDefault()
  const given = Object.fromEntries(new FormData(event.target))
  ask({ ...given, since: fromLocal(given.since), until: fromLocal(given.until), cursor: '' })
}

async function older(next) {
  await ask({ cursor: next })
  scrollTo(0, 0)
}

async function follow(state) {
  state.own.follow = true
  scrollTo(0, 0)
  await reload({ quiet: true })
  draw()
}

function asked(at) {
  const { kind, incident, run, scope, who, since, until } = at.query
  return { kind, incident, run, scope, who, since, until }
}

/** Does a text fit a pattern with * and ?; an empty one fits all. */
function fits(pattern, text) {
  if (!pattern) return true
  const source = pattern.replace(/[.+^${}()|\\]/g, '\\$&').replace(/\*/g, '.*').replace(/\?/g, '.')
  try {
    return new RegExp(`^${source}$`, 's').test(text)
  } catch {
    return true // half a bracket: the brain judges
  }
}
