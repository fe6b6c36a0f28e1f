// The verdict on a kernel log: what is wrong, how sure that is, what to do, and what gpuward would run and why.

import { html, nothing } from '../vendor/lit-html/lit-html.js'
import { either, t, why, whyIn } from '../words.js'
import { outside } from './links.js'
import { severity } from './marks.js'
import { span } from './times.js'

const GATES = /(?:; gates: |；闸门：).*?(?=; verified by |；验证：|$)/ // of a line of a plan: told with the first rung that they hold
const RUNG = /^(back )?\d+\. ([^:]*): (.*)$/s

/** The answer of POST /api/v1/diagnose. */
export function verdict(found) {
  const { incidents } = found
  const blind = Object.values(found.blind)
  return html`<section class="verdict-part">
    <h2 id="verdict" tabindex="-1" class=${blind.length || incidents.length ? 'bad-text' : 'good-text'}>${headline(found)}</h2>
    ${blind.map((text) => html`<p class="banner bad" role="alert"><b>${t('verdict-no-all-clear')}</b> ${text}</p>`)}
    ${incidents.map(incident)}
    ${found.other.length ? html`<section class="card"><h3>${t('verdict-other')}</h3>${lines(found.other)}</section>` : nothing}
    ${Object.values(found.aside).map((text) => html`<p class="small">${text}</p>`)}
    <p class="small">${t('verdict-counts', { n: found.lines - found.unread, known: found.meaningful })}
      ${found.unread ? t('verdict-unread', { n: found.unread }) : nothing}</p>
  </section>`
}

function headline({ incidents, blind, other }) {
  if (incidents.length) return `▲ ${t('verdict-incidents', { n: incidents.length })}`
  if (Object.keys(blind).length) return `? ${t('verdict-unknown')}`
  return `✓ ${t(other.length ? 'verdict-no-rule' : 'verdict-well')}`
}

function incident(one) {
  const { cause, todo } = one.advice
  const { up, back } = planOf(one.plan)
  return html`<article class="card diagnosed">
    <h3>${severity(one.severity)} <a href="/rules?q=${encodeURIComponent(one.cause)}">${one.cause}</a> <code>${one.scope.replace('/log/', '/').replace(/\/log$/, '')}</code></h3>
    <p lang=${whyIn(one)}>${why(one)}</p>
    <p><b>${t('verdict-sure')}</b> ${one.sure}</p>
    ${over(one)}
    ${lines(one.shown)}
    ${one.explained.map((other) => html`<p><b>${t('verdict-explains')}</b> ${other.cause} <code>${other.scope}</code></p>${lines(other.shown)}`)}
    ${cause ? html`<h4>${t('cause')}</h4><p>${either(cause)}</p>` : nothing}
    ${todo ? html`<h4>${t('what-to-do')}</h4><p>${either(todo)}</p>` : nothing}
    ${one.links.map((link) => html`<p>${outside(link)}</p>`)}
    ${one.plan.length ? html`<h4>${t('verdict-would-run')} <a href="/runbooks/${encodeURIComponent(one.runbook)}">${one.runbook}</a></h4>
      <ol class="would-run">${up.map(rung)}</ol>
      ${back.length ? html`<details><summary>${t('way-back')}</summary><ol class="would-run">${back.map(rung)}</ol></details>` : nothing}`
      : html`<p><b>${t('verdict-would-page')}</b></p>`}
  </article>`
}

function over(one) {
  if (one.lasted_s) return html`<p class="good-text">✓ ${t('verdict-over', { span: span(one.lasted_s) })}</p>`
  if (one.booted) return html`<p class="small">${t('verdict-booted', { line: one.booted })}</p>`
  return one.silent_s ? html`<p class="small">${t('verdict-silent', { span: span(one.silent_s) })}</p>` : nothing
}

function lines(texts) {
  return html`<ul class="evidence">${texts.map((text) => {
    const [, number, rest] = /^[^:]*:(\d+): (.*)$/s.exec(text) ?? [null, '', text]
    return html`<li>${number ? html`<span class="small">${t('verdict-line', { n: Number(number) })}</span>` : nothing}<code class="line-text">${rest}</code></li>`
  })}</ul>`
}

/** The rungs of a plan and of its way back: [{name, text}]; what holds several is told with the first. Pure. */
export function planOf(plan) {
  const told = new Set()
  const rungs = plan.map((line) => {
    const [, back, name, text] = RUNG.exec(line) ?? [null, '', '', line]
    const gates = GATES.exec(text)?.[0]
    const again = gates && told.has(gates)
    if (gates) told.add(gates)
    return { back: Boolean(back), name, text: again ? text.replace(gates, '') : text }
  })
  return { up: rungs.filter((one) => !one.back), back: rungs.filter((one) => one.back) }
}

function rung({ name, text }) {
  return html`<li>${name ? html`<strong>${name}</strong> ` : nothing}${text}</li>`
}
