// The `when` of rules and rungs in words (docs/reference.md, The language of conditions): a line for each test, lists for all and any.

import { html, nothing } from '../vendor/lit-html/lit-html.js'
import { t } from '../words.js'

const SHOWN = { eq: 'is', ne: 'is-not', lt: 'lt', lte: 'lte', gt: 'gt', gte: 'gte' }

/** A condition as a list. `symptoms`: [{name, summary, source}], which are told where the condition names them. */
export function conditionList(when, symptoms = []) {
  const known = new Map(symptoms.map((one) => [one.name, one]))
  const parts = partsOf(when)
  if (!parts.length) return html`<p>${t('cond-always')}</p>`
  return parts.length === 1 && (parts[0].any || parts[0].all) ? one(parts[0], known, 'div') : html`<ul class="conditions">${parts.map((part) => one(part, known))}</ul>`
}

/** The parts of a condition, all of which must hold: [{all}|{any}|{not}|{symptom}|{field, test, value}]. Pure. */
export function partsOf(when) {
  return Object.entries(when ?? {}).flatMap(([key, want]) => {
    if (key === 'all') return want.flatMap(partsOf)
    if (key === 'any') return [{ any: want.map(partsOf) }]
    if (key === 'not') return [{ not: partsOf(want) }]
    if (key === 'symptom') return [{ symptom: want }]
    if (Array.isArray(want)) return [{ field: key, test: 'in', value: want }]
    if (want && typeof want === 'object') return Object.entries(want).map(([test, value]) => ({ field: key, test, value }))
    return [{ field: key, test: 'eq', value: want }]
  })
}

function one(part, known, as = 'li') {
  const body = part.any ? any(part.any, known) : part.not ? not(part.not, known) : part.symptom ? symptom(part.symptom, known) : field(part)
  return as === 'li' ? html`<li>${body}</li>` : body
}

function any(alternatives, known) {
  return html`<span class="cond-word">${t('cond-any')}</span>
    <ul class="conditions">${alternatives.map((parts) => (parts.length === 1 ? one(parts[0], known) : html`<li><span class="cond-word">${t('cond-all')}</span>
      <ul class="conditions">${parts.map((part) => one(part, known))}</ul></li>`))}</ul>`
}

function not(parts, known) {
  if (parts.length === 1 && parts[0].symptom) return html`<span class="cond-word">${t('cond-not')}</span> ${symptom(parts[0].symptom, known)}`
  return html`<span class="cond-word">${t('cond-not-all')}</span><ul class="conditions">${parts.map((part) => one(part, known))}</ul>`
}

function symptom(name, known) {
  const told = known.get(name)
  return html`${t('cond-symptom')} <code>${name}</code>${told?.summary ? html`: ${told.summary}` : nothing}
    ${told?.source ? html`<span class="small source">${told.source}</span>` : nothing}`
}

function field({ field: name, test, value }) {
  if (test === 'exists') return html`<code>${name}</code> ${t(value ? 'cond-known' : 'cond-unknown')}`
  if (test === 'ne' && value === '') return html`<code>${name}</code> ${t('cond-known')}`
  if (test === 'in') return html`<code>${name}</code> ${t('cond-in')} ${value.map((each, n) => html`${n ? ', ' : nothing}<code>${String(each)}</code>`)}`
  return html`<code>${name}</code> ${SHOWN[test] ? t(`cond-${SHOWN[test]}`) : test} <code>${String(value)}</code>`
}
