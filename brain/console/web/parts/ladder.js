// A run as a ladder: each rung with what it does and disrupts, its attempts, what a verification waits for, which gate holds it.

import { html, nothing } from '../vendor/lit-html/lit-html.js'
import { t, word, written } from '../words.js'
import { paramsLine, stateMark } from './marks.js'
import { time } from './times.js'

const OVER = ['succeeded', 'exhausted', 'observed', 'cancelled']
const MARKS = { done: '✓', failed: '×', now: '▶', waits: '‖', out: '–', next: '' }

/** The rungs of a run: [{name, plan, steps, mark, back}]. Pure. */
export function rungsOf(run) {
  const steps = (part, number) => run.steps.filter((step) => step.id.startsWith(`${run.id}.${part}${number}.`))
  const up = run.rungs.map((rung, n) => one(run, rung.name, n + 1, rung.do, steps('s', n + 1), run.plan[n] ?? '', 's'))
  const back = run.plan.filter((line) => /^back \d+\. /.test(line)).map((line, n) => {
    const [, name, rest] = /^back \d+\. ([^:]*): (.*)$/s.exec(line) ?? [null, '', line]
    return one(run, name, n + 1, rest, steps('b', n + 1), line, 'b')
  })
  return { up, back }
}

function one(run, name, number, action, steps, line, part) {
  const plan = line.replace(/^(?:back )?\d+\. [^:]*: /s, '')
  const last = steps.at(-1)
  const here = part === 's' && number === run.rung && !OVER.includes(run.state)
  let mark = 'next'
  if (/^(?:left out|略过)/.test(plan)) mark = 'out'
  else if (last) mark = !last.outcome ? 'now' : last.outcome !== 'ok' || last.verified === false ? 'failed' : 'done'
  if (here && (mark === 'next' || run.state === 'held' || run.state === 'approval')) mark = run.state === 'held' || run.state === 'approval' ? 'waits' : 'now'
  if (here && run.state === 'verifying') mark = 'now'
  return { name, action, plan, steps, mark }
}

/** The card of a run. */
export function ladder(state, run) {
  const { up, back } = rungsOf(run)
  return html`<section class="card run">
    <h2>${t('what-is-done')}: <a href="/runbooks/${encodeURIComponent(run.runbook)}">${run.runbook}</a></h2>
    <p>${written(run.summary)}</p>
    <p>${stateMark(run.state, 'run')} ${run.why}</p>
    <ol class="ladder">${up.map(rung)}</ol>
    ${back.length ? html`<h3>${t('way-back')}</h3><ol class="ladder">${back.map(rung)}</ol>` : nothing}
    ${run.gates.length ? html`<h3>${t('gates')}</h3><ul class="plain">${run.gates.slice(-5).map((gate) => html`<li>${time(gate.at)} ${gate.text}</li>`)}</ul>` : nothing}
    ${run.approvals.map((line) => html`<p class="small">${time(line.at)} ${line.text}</p>`)}
    <p class="small"><code>${run.id}</code> · ${time(run.started_at)}${run.ended_at ? html` – ${time(run.ended_at)}` : nothing}${run.approved_by ? html` · ${t('approved-by', { who: run.approved_by })}` : nothing}</p>
  </section>`
}

function rung(one) {
  return html`<li class="rung ${one.mark}">
    <span class="mark" title=${t(`rung-${one.mark}`)}><span aria-hidden="true">${MARKS[one.mark]}</span><span class="hidden">${t(`rung-${one.mark}`)}</span></span>
    <div><strong>${one.name}</strong> <span class="plan">${one.plan}</span>
      ${one.steps.map((step) => html`<div class="step"><span class="small">${time(step.at)}</span> ${paramsLine(step.params)}
        → ${step.outcome ? word('outcome', step.outcome) : step.doing || t('under-way')}${step.why ? html`: ${step.why}` : nothing}
        ${step.verified === null ? nothing : html`<b class=${step.verified ? 'good-text' : 'bad-text'}>${step.verified ? t('it-helped') : t('did-not-help')}</b>`}</div>`)}
    </div></li>`
}
