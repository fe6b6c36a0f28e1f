// What comes of a drill: how far it is, the ladders of its incidents, and what was written down, from the moment it was injected.

import { html, nothing } from '../vendor/lit-html/lit-html.js'
import { repeat } from '../vendor/lit-html/directives/repeat.js'
import { draw } from '../app.js'
import { t, why, whyIn, word, written } from '../words.js'
import { brainNow } from './brain_clock.js'
import { ladder } from './ladder.js'
import { scopeMark, severity, stateMark } from './marks.js'
import { incidentRow } from './rows.js'
import { span } from './times.js'
import { may } from './verbs.js'

const OVER = ['closed', 'explained']
const NOTES = 40 // lines of the time-line before "all"
const SHAPES = { done: '✓', now: '◔', next: '', bad: '▲' }

/** Can an incident come from a drill on these nodes? One whose scope is wider than a node can; `*`: on all of them. */
export function about(incident, nodes) {
  return !incident.node || nodes.includes('*') || nodes.includes(incident.node)
}

/** Has the drill come to its end, a person's part included? */
export function isOver({ incidents }) {
  return incidents.length > 0 && incidents.every((one) => OVER.includes(one.state))
}

/** The milestones of a drill: [{name, after_s, mark}], `after_s` null where it has not been reached. Pure. */
export function progress({ began, incidents, chains }) {
  const facts = chains.flatMap(({ evidence }) => evidence.map((one) => one.at))
  const opened = incidents.map((one) => one.opened_at)
  const runs = chains.flatMap((chain) => chain.runs)
  const told = chains.flatMap((chain) => chain.pages.map((page) => page.at))
  const steps = runs.flatMap((run) => run.steps.map((step) => step.at))
  const person = incidents.some((one) => one.state === 'needs_human')
  const over = isOver({ incidents })
  const first = (times) => times.filter(Boolean).sort()[0]
  const found = [
    ['broken', began],
    ['noticed', first([...facts, ...opened])],
    ['decided', first([...runs.map((run) => run.started_at), ...told])],
    ['acting', first(steps)],
    [person ? 'person' : 'over', over ? incidents.map((one) => one.closed_at ?? '').sort().at(-1) : ''],
  ]
  const last = found.findLastIndex(([, at]) => at)
  return found.map(([name, at], n) => ({
    name,
    after_s: at ? Math.max(0, (Date.parse(at) - Date.parse(began)) / 1000) : null,
    mark: name === 'person' ? 'bad' : at ? 'done' : n === last + 1 ? 'now' : 'next',
  }))
}

/** The page of a drill under way. `on.start(drill, node)` asks for another one. */
export function course(state, on) {
  const { drill, began, incidents, chains, drills } = state.data
  const nodes = (state.at.query.on ?? '').split(',').filter((one) => one && one !== '*')
  const shown = chains.map(({ incident }) => incident.id)
  const repair = drills.find((one) => !one.breaks)
  const person = incidents.find((one) => one.state === 'needs_human')
  return html`<article>
    <header class="head">
      <p class="line small">${t('nav-rehearse')} · ${t('drill-simulated-short')}</p>
      <h1>${state.at.query.drill}</h1>
      <p class="where">${nodes.length ? nodes.map((one, n) => html`${n ? ', ' : nothing}${scopeMark(`node/${one}`)}`) : t('drill-on-all')}</p>
      ${drill ? html`<p>${written(drill.summary)}</p><p class="small"><b>${t('drill-ends')}</b> <span>${written(drill.ends)}</span></p>` : nothing}
    </header>
    <ol class="stages">${progress(state.data).map(stage)}</ol>
    ${verdict(state, began)}
    ${repeat(chains, ({ incident }) => incident.id, (chain) => incidentCard(state, chain))}
    ${incidents.length > shown.length ? html`<section class="part"><h2>${t('drill-others')}</h2>
      <ul class="rows">${incidents.filter((one) => !shown.includes(one.id)).map(incidentRow)}</ul></section>` : nothing}
    ${timeline(state)}
    <div class="bar">
      ${toApprove(chains) ? html`<a class="button main" href="/incidents/${encodeURIComponent(toApprove(chains))}">${t('drill-approve')}</a>` : nothing}
      ${person && nodes.length === 1 && repair && may(state, 'drill') ? html`<button class="main" @click=${() => on.start(repair, nodes[0])}>${t('verb-repair')}</button>` : nothing}
      <a class="button" href="/rehearse">${t('drill-another')}</a>
    </div>
  </article>`
}

function stage({ name, after_s: after, mark }) {
  return html`<li class="stage ${mark}">
    <span class="mark" aria-hidden="true">${SHAPES[mark]}</span>
    <span class="stage-name">${t(`drill-stage-${name}`)}</span>
    <span class="small">${after === null ? nothing : offset(after)}</span></li>`
}

/** How it stands: what is over is told once, what goes on counts. */
function verdict(state, began) {
  const { incidents, chains } = state.data
  const gone = span((brainNow() - Date.parse(began)) / 1000)
  if (isOver(state.data)) {
    const { after_s: after } = progress(state.data).at(-1)
    const alone = !chains.some((chain) => chain.notes.some((note) => note.kind.startsWith('operator.')))
    return html`<p class="verdict good" role="status">✓ ${t(alone ? 'drill-healed-alone' : 'drill-healed', { span: span(after ?? 0) })}</p>`
  }
  if (incidents.some((one) => one.state === 'needs_human')) {
    return html`<p class="verdict bad" role="status">▲ ${t('drill-needs-person')}</p>`
  }
  if (toApprove(chains)) return html`<p class="verdict bad" role="status">? ${t('drill-waits')}</p>`
  return html`<p class="verdict"><span role="status">${t(incidents.length ? 'drill-under-way' : 'drill-not-noticed')}</span> <span class="small">${gone}</span></p>`
}

function toApprove(chains) {
  return chains.find((chain) => chain.runs.some((run) => run.state === 'approval'))?.incident.id
}

function incidentCard(state, { incident, runs }) {
  return html`<section class="card drill-incident">
    <p class="line">${severity(incident.severity)} ${stateMark(incident.state)}</p>
    <h2><a href="/incidents/${encodeURIComponent(incident.id)}">${incident.cause}</a></h2>
    <p class="where">${scopeMark(incident.scope, incident.node)}</p>
    <p lang=${whyIn(incident)}>${why(incident)}</p>
    ${incident.waits ? html`<p class="waits">${incident.waits}</p>` : nothing}
    ${runs.length || OVER.includes(incident.state) ? nothing : html`<p class="small">${incident.runbook ? t('no-run-yet', { runbook: incident.runbook }) : t('no-runbook')}</p>`}
  </section>
  ${[...runs].reverse().map((run) => ladder(state, run))}`
}

function timeline(state) {
  const { began, chains } = state.data
  const seen = new Map(chains.flatMap((chain) => chain.notes).map((one) => [one.id, one]))
  const lines = [...seen.values()].sort((a, b) => (a.at < b.at ? 1 : a.at > b.at ? -1 : 0))
  if (!lines.length) return nothing
  const all = state.own.allNotes || lines.length <= NOTES
  return html`<section class="card"><h2>${t('what-happened')}</h2>
    <ol class="notes offsets">${lines.slice(0, all ? undefined : NOTES).map((one) => html`<li>
      <time class="small" datetime=${one.at} title=${one.at}>${offset((Date.parse(one.at) - Date.parse(began)) / 1000)}</time> <span><b class="small">${word('note', one.kind)}</b> ${one.text}</span></li>`)}</ol>
    ${all ? nothing : html`<button @click=${() => { state.own.allNotes = true; draw() }}>${t('show-all', { n: lines.length })}</button>`}
  </section>`
}

/** Seconds after the drill began: tenths while it is young. */
function offset(seconds) {
  return seconds < 10 ? t('drill-offset-s', { s: Math.max(0, seconds).toFixed(1) }) : `+${span(seconds)}`
}
