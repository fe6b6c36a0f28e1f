// One incident: what, where, since when, why we think so, what is done about it, who is hit, and what a person can say.

import { html, nothing } from '../vendor/lit-html/lit-html.js'
import { repeat } from '../vendor/lit-html/directives/repeat.js'
import { get, path, Problem } from '../net.js'
import { exactly } from '../parts/approval.js'
import { ladder } from '../parts/ladder.js'
import { outside } from '../parts/links.js'
import { scopeMark, severity, stateMark } from '../parts/marks.js'
import { time } from '../parts/times.js'
import { askAck, askApprove, askClose, askDeny, askHold, askNote, askReturn, may, sayButton, verbButton } from '../parts/verbs.js'
import { whose } from '../parts/whose.js'
import { either, t, word, why, whyIn } from '../words.js'

const OVER = ['closed', 'explained']
const LINES = 12 // of evidence and of notes, before "all"

export function title(state) {
  return state.data ? `${state.data.incident.cause} · ${state.data.incident.id}` : state.at.args.id
}

export async function load(at, { signal, state }) {
  const found = await get(`explain/${path(at.args.id)}`, { signal })
  if (!found.incident) throw new Problem(404, `${found.found.kind} ${found.found.id}`) // of none, or of several
  if (at.query.say) setTimeout(() => asked(at, state)) // when it is shown
  return found
}

/** Opens the question that a link has asked for (a card's button in a chat), once; not the one about a step that is over. */
function asked(at, state) {
  if (state.at !== at || !state.data || state.dialog) return
  const { say, rung } = at.query
  const to = new URL(location.href)
  for (const name of ['say', 'rung']) to.searchParams.delete(name)
  history.replaceState({}, '', to)
  delete at.query.say
  const { incident, runs } = state.data
  const run = runs.find((one) => one.approval)
  if (OVER.includes(incident.state) || !can(state, say)) return
  if (say === 'approve' && run && (!rung || rung === run.approval.rung)) askApprove(state, { id: run.id, rung: run.approval.rung, seen: run.approval.seen }, run.approval)
  else if (say === 'deny' && run) askDeny(state, run.id)
  else if (say === 'ack' && !incident.pages.acked_by) askAck(state, incident.id)
  else if (say === 'hold') askHold(state, incident.scope)
}

/** Is a note about what is shown? */
export function concerns(note, state) {
  const found = state.data?.incident
  return !found || note.incident === found.id || (found.node && note.scope.includes(found.node)) || note.kind.startsWith('operator.')
}

export function view(state) {
  const { incident, runs, rule } = state.data
  const waiting = runs.find((run) => run.approval)
  return html`
    <article class="incident">
      <header class="head">
        <p class="line">${severity(incident.severity)} ${incident.asks ? stateMark('approval', 'run') : stateMark(incident.state)} <code class="id">${incident.id}</code></p>
        <h1>${incident.cause}</h1>
        <p class="where">${scopeMark(incident.scope, incident.node)}${incident.nodes > 1 ? html` · ${t('nodes-hit', { n: incident.nodes })}` : nothing}</p>
        <p>${t('since')} ${time(incident.opened_at)} (${time(incident.opened_at, { relative: true })})
          ${incident.closed_at ? html`· ${t('until')} ${time(incident.closed_at)}: ${incident.closed_why}` : nothing}</p>
        ${incident.times > 1 ? html`<p class="waits">${t('came-back', { n: incident.times - 1 })}</p>` : nothing}
        ${(incident.episodes ?? []).map((one) => html`<p class="before">${t('before')} ${time(one.opened_at)} – ${time(one.closed_at)}: ${one.why}</p>`)}
        ${Object.entries(incident.pages.tickets ?? {}).map(([channel, key]) => html`<p class="ticket">${t('ticket')} <strong>${key}</strong> (${channel})</p>`)}
        ${incident.waits ? html`<p class="waits">${incident.waits}</p>` : nothing}
        ${repeat(state.data.holds, (one) => one.id, (one) => html`<p class="waits">‖ ${t('held-by', one)} · ${one.until ? html`${t('until')} ${time(one.until)}` : t('until-released')} ${sayButton(state, { verb: 'release', args: { scope: one.id }, asks: [] }, { what: t('release-what', one) })}</p>`)}
        ${incident.stale ? html`<p class="waits">${t('stale')}</p>` : nothing}
        ${incident.explained_by ? html`<p class="waits">${t('explained-by')} <a href="/incidents/${encodeURIComponent(incident.explained_by)}">${incident.explained_by}</a></p>` : nothing}
        ${incident.pages.passed_to ? html`<p class="waits">${t('alert-passed-to')} <a href="/incidents/${encodeURIComponent(incident.pages.passed_to)}">${incident.pages.passed_to}</a></p>` : nothing}
      </header>
      ${waiting ? approval(state, waiting) : nothing}
      ${whyCard(incident, rule)}
      ${sure(state.data)}
      ${places(state.data)}
      ${runs.length ? repeat([...runs].reverse(), (run) => run.id, (run) => ladder(state, run)) : html`
        <section class="card"><h2>${t('what-is-done')}</h2><p>${incident.runbook ? t('no-run-yet', { runbook: incident.runbook }) : t('no-runbook')}</p></section>`}
      ${hit(state)}
      ${evidence(state)}
      ${told(state)}
      ${notes(state)}
      ${actions(state, incident, waiting)}
    </article>`
}

/** May whoever is there say it about this incident? The brain has judged it by their limits, too. */
function can(state, verb) {
  const { verbs } = state.data
  return may(state, verb) && (!verbs || verbs.some((one) => one.verb === verb))
}

function approval(state, run) {
  const would = run.would.filter((one) => !run.steps.some((step) => step.id === one.step))
  return html`<section class="card asks" aria-labelledby="asks">
    <h2 id="asks">${t('needs-approval')}</h2>
    ${exactly(run.approval)}
    ${would.map((one) => html`<p class=${one.ok ? 'would' : 'would bad'}>${one.lines.map((text) => html`<span>${text}</span>`)}</p>`)}
    ${can(state, 'approve') ? html`<p class="actions only-wide">${approve(state, run)} ${verbButton(state, 'deny', t('verb-deny'), () => askDeny(state, run.id), { bad: true })}</p>`
      : html`<p class="small">${state.me?.how ? t(may(state, 'approve') ? 'may-not-here' : 'may-not-approve') : t('log-in-to-act')}</p>`}
  </section>`
}

function approve(state, run, main = true) {
  const args = { id: run.id, rung: run.approval.rung, seen: run.approval.seen }
  return verbButton(state, 'approve', t('verb-approve'), () => askApprove(state, args, run.approval), { main })
}

function whyCard(incident, rule) {
  const { knowledge } = rule
  return html`<section class="card">
    <h2>${t('why-we-think-so')}</h2>
    <p lang=${whyIn(rule)}>${why(rule)}</p>
    ${knowledge ? html`<p>${either(knowledge.cause)}</p>
      <h3>${t('what-to-do')}</h3><p>${either(knowledge.todo)}</p>
      ${knowledge.links.map((link) => html`<p>${outside(link)}</p>`)}` : nothing}
    <p class="small">${t('rule')} <a href="/rules/${encodeURIComponent(rule.name)}">${rule.name}</a> (${rule.version})
      ${rule.matching_rules.length ? html`· ${t('also-matches')} ${rule.matching_rules.join(', ')}` : nothing}</p>
    <ul class="plain">${incident.symptoms.map((symptom) => {
      const [name, scope] = symptom.split(/@(.*)/s)
      return html`<li><strong>${name}</strong> ${scopeMark(scope ?? '')}</li>`
    })}</ul>
    ${incident.symptom_count > incident.symptoms.length ? html`<p class="small">${t('more-symptoms', { n: incident.symptom_count - incident.symptoms.length })}</p>` : nothing}
  </section>`
}

/** How sure it is, what else it may be, and which facts would change it; of what is over nothing is judged. */
function sure({ sureness, changes }) {
  if (!sureness) return nothing
  return html`<section class="card sureness">
    <h2>${t('how-sure')}: ${word('sure', sureness.level)}</h2>
    ${sureness.reasons.length || sureness.against.length ? texts(sureness.reasons) : html`<p>${t('nothing-speaks')}</p>`}
    ${sureness.against.length ? html`<h3>${t('speaks-against')}</h3>${texts(sureness.against)}` : nothing}
    ${sureness.alternatives.length ? html`<h3>${t('it-may-be')}</h3>${texts(sureness.alternatives)}` : nothing}
    <h3>${t('what-would-change-it')}</h3>
    ${texts(changes.map((one) => one.text))}
  </section>`
}

/** Of a shared cause: which places were considered, and why it is this one. */
function places({ places: considered }) {
  if (!considered.length) return nothing
  return html`<section class="card places"><h2>${t('which-place')}</h2><ul class="plain">${considered.map((one) => html`<li>
    ${one.best ? html`<strong>${one.place}</strong>` : one.place} <span class="small">${t('ill-of', { ill: one.ill, of: one.of })}</span> ${one.why}</li>`)}</ul>
  </section>`
}

function texts(lines) {
  return lines.length ? html`<ul class="plain">${lines.map((one) => html`<li>${either(one)}</li>`)}</ul>` : nothing
}

function hit(state) {
  const { incident, out_of_service: out } = state.data
  return html`<section class="card hit"><h2>${t('who-is-hit')}</h2>
    ${whose(incident.hit)}
    ${incident.explains ? html`<p>${t('explains', { n: incident.explains })}</p>` : nothing}
    ${out.map((node) => html`<p>${t('out-of-service', { node })} ${verbButton(state, 'return', t('verb-return'), () => askReturn(state, node))}</p>`)}
  </section>`
}

function evidence(state) {
  const lines = state.data.evidence
  const all = state.own.allEvidence
  const bundles = state.data.runs.flatMap((run) => run.steps.filter((step) => step.evidence).map((step) => step.evidence))
  return html`<section class="card"><h2>${t('what-it-rests-on')}</h2>
    ${lines.length ? html`<ul class="evidence">${lines.slice(0, all ? undefined : LINES).map((one) => html`<li>
      <span class="small">${time(one.at)} ${one.node} ${one.component} <b>${one.kind}</b></span>
      <code class="line-text">${one.text}</code></li>`)}</ul>` : html`<p>${t('no-evidence')}</p>`}
    ${lines.length > LINES && !all ? html`<button @click=${(event) => more(event, state, 'allEvidence')}>${t('show-all', { n: lines.length })}</button>` : nothing}
    ${bundles.map((name) => html`<p>${t('bundle')} <a href="/evidence/${name.split('/').map(encodeURIComponent).join('/')}">${name}</a></p>`)}
  </section>`
}

function told(state) {
  const { pages } = state.data
  if (!pages.length) return nothing
  return html`<section class="card"><h2>${t('who-was-told')}</h2><ul class="plain">${pages.map((page) => html`<li>
    ${time(page.at)} ${page.text} <span class=${page.delivered ? 'small' : 'small bad-text'}>${page.delivered ? t('delivered', { by: page.delivered.replace(/^(?:by |由 )/, '') }) : t('not-delivered')}</span>
    ${page.failures.map((failure) => html`<br><span class="small bad-text">${failure}</span>`)}</li>`)}
    ${pages.at(-1).acked.map((one) => html`<li>${time(one.at)} ${one.text}</li>`)}</ul></section>`
}

function notes(state) {
  const lines = [...state.data.notes].reverse()
  const all = state.own.allNotes
  return html`<section class="card"><h2>${t('what-happened')}</h2>
    <ol class="notes">${lines.slice(0, all ? undefined : LINES).map((one) => html`<li><span class="small">${time(one.at)} ${word('note', one.kind)}</span> ${one.text}</li>`)}</ol>
    ${lines.length > LINES && !all ? html`<button @click=${(event) => more(event, state, 'allNotes')}>${t('show-all', { n: lines.length })}</button>` : nothing}
    ${can(state, 'note') ? verbButton(state, 'note', t('verb-note'), () => askNote(state, state.data.incident.id)) : nothing}
    <p class="small"><a href="/audit?incident=${encodeURIComponent(state.data.incident.id)}">${t('in-the-audit')}</a></p>
  </section>`
}

async function more(event, state, name) {
  state.own[name] = true
  const { draw } = await import('../app.js')
  draw()
}

/** What a person can say, what its state asks for first: an answer to an approval, that somebody has it, else a hold. */
function actions(state, incident, waiting) {
  if (OVER.includes(incident.state) || !['ack', 'hold', 'close'].some((one) => can(state, one))) return nothing
  const running = state.data.runs.some((run) => !['succeeded', 'exhausted', 'observed', 'cancelled'].includes(run.state))
  const asked = incident.pages.sent > 0 || incident.state === 'needs_human'
  const node = incident.node ? `node/${incident.node}` : ''
  const said = {
    approve: waiting && can(state, 'approve') && ((main) => approve(state, waiting, main)),
    ack: asked && !incident.pages.acked_by && can(state, 'ack') && ((main) => verbButton(state, 'ack', t('verb-ack'), () => askAck(state, incident.id), { main })),
    hold: can(state, 'hold') && ((main) => verbButton(state, 'hold', t('verb-hold'), () => askHold(state, node || incident.scope, node && incident.scope !== node ? [incident.scope] : []), { main })),
    deny: waiting && can(state, 'deny') && (() => verbButton(state, 'deny', t('verb-deny'), () => askDeny(state, waiting.id), { bad: true })),
    over: running && !waiting && can(state, 'deny') && (() => verbButton(state, 'deny', t('take-over'), () => askDeny(state, incident.id, { over: true }))),
    close: can(state, 'close') && (() => verbButton(state, 'close', t('verb-close'), () => askClose(state, incident.id))),
  }
  const first = ['approve', 'ack', 'hold'].find((one) => said[one])
  const rest = ['deny', 'ack', 'over', 'hold', 'close'].filter((one) => said[one] && one !== first)
  // Each by its name: whoever has the keyboard on one of them has it on none that comes into its place
  return html`<div class="bar">${repeat([first, ...rest].filter(Boolean), (one) => one, (one) => said[one](one === first))}</div>`
}
