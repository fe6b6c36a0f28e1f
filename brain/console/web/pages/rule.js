// One rule: why, what it means, what it matches, and what came of it here.

import { html, nothing } from '../vendor/lit-html/lit-html.js'
import { repeat } from '../vendor/lit-html/directives/repeat.js'
import { get, path, query } from '../net.js'
import { conditionList } from '../parts/conditions.js'
import { figures } from '../parts/figures.js'
import { outside } from '../parts/links.js'
import { severity } from '../parts/marks.js'
import { incidentRow } from '../parts/rows.js'
import { span, time } from '../parts/times.js'
import { either, t, word, why, whyIn } from '../words.js'

const ROWS = 8
const DRAIN = /\$drain/g

export function title(state) {
  return state.at.args.name
}

export async function load(at, { signal }) {
  const rule = await get(`rules/${path(at.args.name)}`, { signal })
  const { incidents } = await get(`incidents${query({ all: true, cause: rule.cause, limit: 50 })}`, { signal })
  return { rule, incidents: incidents.filter((one) => one.rule === rule.name) }
}

export function concerns(note, state) {
  return note.kind.startsWith('incident.') && (!state.data || note.data?.cause === state.data.rule.cause || state.data.incidents.some((one) => one.id === note.incident))
}

export function view(state) {
  const { rule } = state.data
  return html`<article>
    <header class="head">
      <p class="line">${severity(rule.severity)} <span class="small">${word('severity', rule.severity)}</span></p>
      <h1>${rule.name}</h1>
      <p lang=${whyIn(rule)}>${why(rule)}</p>
      <p class="small">${t('scope')}: <code>${rule.scope}</code>
        ${rule.cause === rule.name ? nothing : html` · ${t('cause')}: <code>${rule.cause}</code>`}
        · ${t('runbook')}: ${rule.runbook ? html`<a href="/runbooks/${encodeURIComponent(rule.runbook)}">${rule.runbook}</a>` : t('rule-people')}
        · ${word('page', rule.page)}</p>
    </header>
    ${figures([
      [t('figure-fired'), rule.fired, rule.last_at ? time(rule.last_at, { relative: true }) : nothing],
      [t('figure-open'), rule.open], [t('figure-healed'), rule.healed],
      [t('figure-median'), rule.healed_in_s === null ? '–' : span(rule.healed_in_s)],
    ])}
    ${meaning(rule)}
    <section class="card"><h2>${t('rule-matches')}</h2>
      ${conditionList(rule.when, rule.symptoms)}
      <p class="small">${rule.hold_off_s ? html`${t('rule-hold-off', { span: span(rule.hold_off_s) })} ` : nothing}${t('rule-resolve', { span: span(rule.resolve_delay_s) })}</p>
      ${rule.inhibits.length ? html`<h3>${t('rule-inhibits')}</h3><p>${[...new Set(rule.inhibits)].map((one, n) => html`${n ? ', ' : nothing}<a href="/rules?q=${encodeURIComponent(one)}">${one}</a>`)}</p>` : nothing}
    </section>
    ${came(state)}
    <p class="small">${t('rule-source')} <code>${rule.source || t('rules-made')}</code> · ${t('rules-version', { pack: rule.pack })}</p>
  </article>`
}

function meaning(rule) {
  return html`<section class="card"><h2>${t('rule-means')}</h2>
    <p>${either(rule.cause_text)}</p>
    <h3>${t('what-to-do')}</h3><p>${todo(rule.todo)}</p>
    ${rule.advice.map((one) => html`<div class="only"><b>${t('rule-in-case')}</b> ${conditionList(one.when, rule.symptoms)}<p>${todo(one.todo)}</p></div>`)}
    ${rule.links.map((link) => html`<p>${outside(link)}</p>`)}
  </section>`
}

function todo(texts) {
  return either(texts).replace(DRAIN, t('rule-drain')).trim()
}

function came(state) {
  const { rule, incidents } = state.data
  if (!incidents.length) return nothing
  return html`<section class="part"><h2>${t('rule-incidents')}</h2>
    <ul class="rows">${repeat(incidents.slice(0, ROWS), (one) => one.id, incidentRow)}</ul>
    ${incidents.length > ROWS ? html`<p><a class="button" href="/incidents?${new URLSearchParams({ cause: rule.cause, all: 'true' })}">${t('all-of-them')}</a></p>` : nothing}
  </section>`
}
