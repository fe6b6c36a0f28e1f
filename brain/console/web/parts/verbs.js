// What people say to the brain, each with a question before it: approve, deny, ack, hold, close, return, note, mode.

import { html, nothing } from '../vendor/lit-html/lit-html.js'
import { load, ownState, say, state } from '../app.js'
import { get, post, Problem } from '../net.js'
import { t, word, written } from '../words.js'
import { exactly } from './approval.js'
import { askFor, refuse } from './dialog.js'
import { scopeMark } from './marks.js'

const RANK = ['viewer', 'operator', 'approver', 'administrator']
const LEAST = {
  hold: 'operator', release: 'operator', approve: 'approver', deny: 'operator', ack: 'operator', close: 'operator',
  return: 'operator', forget: 'operator', note: 'operator', start: 'approver', mode: 'administrator', reset: 'approver',
  drill: 'operator', observe: 'operator', // who may stop things may also have them only planned
}
const HOURS = [['3600', 1], ['14400', 4], ['28800', 8], ['86400', 24]]

/** May whoever is there say it anywhere? The brain judges each word by its scope as well. */
export function may(state, verb) {
  return Boolean(state.me?.how) && RANK.indexOf(state.me.role) >= RANK.indexOf(LEAST[verb])
}

/** A button that asks first; nothing for those who may not. `main`: what is most likely meant. */
export function verbButton(state, verb, label, ask, { main = false, bad = false } = {}) {
  if (!may(state, verb)) return nothing
  return html`<button class=${main ? 'main' : bad ? 'bad' : ''} data-verb=${verb} @click=${ask}>${label}</button>`
}

/** Gives a command, and says what came of it. Returns whether the brain has taken it; where not, the question that is open says why. */
export async function give(verb, args) {
  const given = Object.fromEntries(Object.entries(args).filter(([, value]) => value !== '' && value !== undefined))
  try {
    const said = await post('command', { verb, args: given })
    say(said.waiting || said.notes?.[0]?.text || t('said-done', { verb: word('verb', verb) }))
    ownState().catch(() => {}) // the holds in force; the next look has them otherwise
    await load({ quiet: true })
    return true
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    const why = error.status === 401 ? t('login-ended') : error.message || t('no-answer')
    if (!refuse(state, why, { over: error.status === 409 })) say(why, { bad: true })
    return false
  }
}

/** A button for one of the verbs that the brain says this person may give ({verb, args, asks}); it asks first. */
export function sayButton(state, one, { main = false, approval = null, what = '' } = {}) {
  const { verb, args } = one
  const ask = {
    approve: () => askApprove(state, args, approval),
    deny: () => askDeny(state, args.id),
    ack: () => askAck(state, args.id),
    hold: () => askHold(state, args.scope),
    close: () => askClose(state, args.id),
    return: () => askReturn(state, args.node),
    release: () => askRelease(state, args.scope, what),
    reset: () => askReset(state),
  }[verb]
  return ask ? verbButton(state, verb, t(`verb-${verb}`), ask, { main, bad: verb === 'deny' }) : nothing
}

/** Asks for an approval: what exactly would be done, and what it disrupts, stands in the question. */
export function askApprove(state, args, approval) {
  askFor(state, { title: t('approve-title'), body: exactly(approval), action: t('verb-approve'), careful: true, then: () => give('approve', args) })
}

/** Asks before somebody says that they have it: nobody is called again. */
export function askAck(state, id) {
  askFor(state, { title: t('ack-title'), body: html`<p>${t('ack-what')}</p>`, action: t('verb-ack'), then: () => give('ack', { id }) })
}

/** Asks before the breaker is reset. */
export function askReset(state) {
  askFor(state, { title: t('reset-title'), body: html`<p>${t('reset-what')}</p>`, action: t('verb-reset'), bad: true, then: () => give('reset', {}) })
}

/** Asks for a reason, and ends a run: no to its step, or, `over`, a person takes the fault over. */
export function askDeny(state, id, { over = false } = {}) {
  askFor(state, {
    title: t(over ? 'take-over-title' : 'deny-title'), body: html`<p>${t('deny-what')}</p>`, action: t(over ? 'take-over' : 'verb-deny'), bad: true,
    fields: [{ name: 'why', label: t('why') }], then: ({ why }) => give('deny', { id, why }),
  })
}

/** Asks how long, and why, to hold a scope. */
export function askHold(state, scope, others = []) {
  askFor(state, {
    title: t('hold-title'), body: html`<p>${t('hold-what')}</p>`, action: t('verb-hold'),
    fields: [
      others.length ? { name: 'scope', label: t('scope'), value: scope, options: [scope, ...others].map((one) => [one, one]) }
        : { name: 'scope', label: t('scope'), value: scope, needed: true },
      { name: 'for_s', label: t('for-how-long'), value: '14400', options: [...HOURS.map(([s, h]) => [s, t('hours', { h })]), ['', t('until-released')]] },
      { name: 'why', label: t('why'), needed: true },
    ],
    then: ({ scope: where, for_s: lasts, why }) => give('hold', { scope: where, why, for_s: lasts ? Number(lasts) : undefined }),
  })
}

/** Asks for what is to be written down about an incident. */
export function askNote(state, id) {
  askFor(state, {
    title: t('note-title'), body: html`<p>${t('note-what')}</p>`, action: t('verb-note'),
    fields: [{ name: 'text', label: t('note-text'), needed: true }], then: ({ text }) => give('note', { id, text }),
  })
}

/** Asks for a reason, and closes an incident. */
export function askClose(state, id) {
  askFor(state, {
    title: t('close-title'), body: html`<p>${t('close-what')}</p>`, action: t('verb-close'), bad: true,
    fields: [{ name: 'why', label: t('why') }], then: ({ why }) => give('close', { id, why }),
  })
}

/** Asks before a node goes back into service on somebody's word. */
export function askReturn(state, node) {
  askFor(state, {
    title: t('return-title', { node }), body: html`<p>${t('return-what')}</p>`, action: t('verb-return'), bad: true,
    then: () => give('return', { node }),
  })
}

/** Ends a hold, by its id. `what`: which it is, in a sentence. */
export function askRelease(state, id, what) {
  askFor(state, { title: t('release-title'), body: html`<p>${what}</p>`, action: t('verb-release'), then: () => give('release', { scope: id }) })
}

/** Asks which of those runbooks that people may start, and starts it on a node: gates and approvals count as ever. */
export async function askStart(state, node) {
  let found
  try {
    found = (await get('runbooks')).runbooks.filter((one) => one.starts_on === 'node')
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    say(error.message || t('no-answer'), { bad: true })
    return
  }
  if (!found.length) {
    say(t('start-none'), { bad: true })
    return
  }
  askFor(state, {
    title: t('start-title', { node }),
    body: html`<p>${t('start-what')}</p><ul class="plain small">${found.map((one) => html`<li><strong>${one.name}</strong>: ${written(one.summary)}</li>`)}</ul>`,
    action: t('verb-start'),
    fields: [
      { name: 'runbook', label: t('runbook'), value: found[0].name, options: found.map((one) => [one.name, one.name]) },
      { name: 'why', label: t('why') },
    ],
    then: ({ runbook, why }) => give('start', { runbook, node, why }),
  })
}

/** Asks before a node that is gone for good is forgotten. */
export function askForget(state, node) {
  askFor(state, {
    title: t('forget-title', { node }), body: html`<p>${t('forget-what')}</p>`, action: t('verb-forget'), bad: true,
    fields: [{ name: 'why', label: t('why') }], then: ({ why }) => give('forget', { node, why }),
  })
}

/** Asks before a simulated machine breaks (or is repaired). `then(injected)`: the answer of the API. */
export function askDrill(state, drill, node, then) {
  askFor(state, {
    title: t('drill-title', { name: drill.name }),
    body: html`<p>${written(drill.summary)}</p><p class="exact">${node ? scopeMark(`node/${node}`) : t(drill.affects === 'all' ? 'drill-on-all' : 'drill-on-first')}</p>
      <p class="small">${t('drill-simulated')}</p>`,
    action: t(drill.breaks ? 'verb-drill' : 'verb-repair'),
    then: async () => {
      try {
        await then(await post('drill', { name: drill.name, node }))
      } catch (error) {
        if (!(error instanceof Problem)) throw error
        say(error.message || t('no-answer'), { bad: true })
      }
    },
  })
}

/** Asks how far a runbook may go by itself, and where. `allowed`: the modes that whoever is there may set. */
export function askMode(state, runbook, allowed) {
  const upTo = ['observe', 'approve', 'auto'].indexOf(runbook.at_most)
  const modes = allowed.filter((one, n) => n <= upTo)
  askFor(state, {
    title: t('mode-title', { name: runbook.name }), action: t('verb-mode'),
    body: html`<p>${t('mode-what')}</p><ul class="plain small">${modes.map((one) => html`<li><b>${word('mode', one)}</b>: ${t(`mode-means-${one}`)}</li>`)}</ul>`,
    fields: [
      { name: 'mode', label: t('mode'), value: modes[0], options: modes.map((one) => [one, word('mode', one)]) },
      { name: 'nodes', label: t('mode-nodes'), value: '*', needed: true },
    ],
    then: ({ mode, nodes }) => give('mode', { runbook: runbook.name, mode, nodes }),
  })
}
