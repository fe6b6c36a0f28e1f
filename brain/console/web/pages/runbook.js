// One runbook: its ladder as a picture and in full, how far it may go on which nodes, and what came of it.

import { html, nothing } from '../vendor/lit-html/lit-html.js'
import { repeat } from '../vendor/lit-html/directives/repeat.js'
import { get, path, query } from '../net.js'
import { figures } from '../parts/figures.js'
import { scopeMark, stateMark } from '../parts/marks.js'
import { rungList, stairs } from '../parts/stairs.js'
import { span, time } from '../parts/times.js'
import { askMode, may } from '../parts/verbs.js'
import { t, word, written } from '../words.js'

const ROWS = 8

export function title(state) {
  return state.at.args.name
}

export async function load(at, { signal }) {
  const [runbook, { runs }] = await Promise.all([
    get(`runbooks/${path(at.args.name)}`, { signal }), get(`runs${query({ runbook: at.args.name, limit: ROWS })}`, { signal }),
  ])
  return { runbook, runs }
}

export function concerns(note) {
  return note.kind.startsWith('run.') || note.kind === 'operator.mode'
}

export function view(state) {
  const { runbook } = state.data
  const { rungs, return_to_service: back } = runbook
  return html`<article>
    <header class="head"><p class="small">${t('runbook')}</p><h1>${runbook.name}</h1><p>${written(runbook.summary)}</p>
      ${runbook.rules.length ? html`<p class="small">${t('runbook-rules')} ${runbook.rules.map((one, n) => html`${n ? ', ' : nothing}<a href="/rules/${encodeURIComponent(one)}">${one}</a>`)}</p>` : nothing}
    </header>
    ${modes(state, runbook)}
    <section class="card"><h2>${t('runbook-ladder')}</h2>
      ${stairs(rungs)}
      <p class="small stair-key">${['nothing', 'job', 'node', 'fabric'].map((one) => html`<span class="key ${one}">${word('rung-disrupts', one)}</span>`)}<span>✓ ${t('stairs-verified')}</span></p>
      ${rungList(rungs)}
      <p class="small">${runbook.tries ? t('runbook-tries', { n: runbook.tries, span: span(runbook.tries_within_s) }) : nothing}
        ${runbook.last_resort ? html`${t('runbook-last-resort')} <a href="/runbooks/${encodeURIComponent(runbook.last_resort)}">${runbook.last_resort}</a>` : nothing}</p>
    </section>
    ${back.length ? html`<section class="card"><h2>${t('way-back')}</h2><p class="small">${t('runbook-back-when')}</p>
      ${rungList(back, { prefix: 'back', back: true })}</section>` : nothing}
    ${figures([
      [t('figure-runs'), runbook.runs, runbook.last_at ? time(runbook.last_at, { relative: true }) : nothing],
      [t('figure-succeeded'), runbook.succeeded], [t('figure-exhausted'), runbook.exhausted], [t('figure-observed'), runbook.observed],
      [t('figure-median'), runbook.healed_in_s === null ? '–' : span(runbook.healed_in_s)],
    ])}
    ${ran(state.data.runs)}
    <p class="small">${runbook.request ? html`${t('runbook-request')} ` : nothing}${runbook.every_s ? html`${t('runbook-every', { span: span(runbook.every_s) })} ` : nothing}
      ${runbook.source ? html`${t('rule-source')} <code>${runbook.source}</code> · ` : nothing}${t('rules-version', { pack: runbook.pack })}</p>
  </article>`
}

/** The last that fits a node counts, so it stands first. */
function modes(state, runbook) {
  const allowed = may(state, 'mode') ? ['observe', 'approve', 'auto'] : may(state, 'observe') ? ['observe'] : []
  return html`<section class="card"><h2>${t('runbook-modes')}</h2>
    ${runbook.modes.length ? html`<ul class="plain modes">${[...runbook.modes].reverse().map((one) => html`<li>
      ${modeMark(one.mode)} <span>${one.nodes ? html`${t('mode-on')} <code>${one.nodes}</code>` : t('mode-wider')}</span>
      <span class="small">${one.runbook === runbook.name ? nothing : html`${t('mode-for')} <code>${one.runbook}</code> · `}${one.who ? html`${one.who} ${one.at ? time(one.at) : nothing}${one.why ? `: ${one.why}` : nothing}` : t('mode-by-configuration')}</span></li>`)}</ul>`
      : html`<p>${modeMark('observe')} ${t('mode-none')}</p>`}
    <p class="small">${t('modes-last-counts')} ${runbook.at_most === 'auto' ? nothing : t('mode-at-most', { mode: word('mode', runbook.at_most) })}</p>
    ${allowed.length ? html`<p class="actions"><button data-verb="mode" @click=${() => askMode(state, runbook, allowed)}>${t('verb-mode')}</button></p>` : nothing}
  </section>`
}

function modeMark(mode) {
  return html`<span class="mode ${mode}"><span aria-hidden="true">${{ observe: '◎', approve: '?', auto: '▶' }[mode] ?? ''}</span> ${word('mode', mode)}</span>`
}

function ran(runs) {
  if (!runs.length) return nothing
  return html`<section class="part"><h2>${t('runbook-runs')}</h2><ul class="rows">${repeat(runs, (one) => one.id, (one) => html`<li class="row">
    <a class="row-link" href="/incidents/${encodeURIComponent(one.incident)}"><code>${one.id}</code></a>${stateMark(one.state, 'run')}
    <span class="row-where">${scopeMark(one.scope, one.node)}</span><span class="small">${time(one.started_at, { relative: true })}</span>
    <span class="row-why">${one.why}</span></li>`)}</ul></section>`
}
