// A runbook's ladder: a picture of how much each rung disrupts, and every rung in full as a list. Gentlest first.

import { html, nothing } from '../vendor/lit-html/lit-html.js'
import { t, word, written } from '../words.js'
import { conditionList } from './conditions.js'
import { paramsLine } from './marks.js'
import { span } from './times.js'

const LEVELS = ['nothing', 'job', 'node', 'fabric']
const SHAPES = { nothing: '○', job: '◔', node: '◑', fabric: '●' }

/** The picture: a step for each rung, the higher the more it disrupts; each leads to its rung in the list. */
export function stairs(rungs, prefix = 'rung') {
  return html`<ol class="stairs" aria-label=${t('stairs')}>${rungs.map((one, n) => html`<li>
    <a href="#${prefix}-${n + 1}" @click=${(event) => jump(event, `${prefix}-${n + 1}`)} class="stair ${level(one)}">
      <span class="stair-block" aria-hidden="true">${one.verify ? '✓' : ''}</span>
      <span class="stair-name">${one.name}</span><span class="hidden">${word('rung-disrupts', one.disrupts)}</span></a></li>`)}</ol>`
}

/** All rungs in full. */
export function rungList(rungs, { prefix = 'rung', back = false } = {}) {
  return html`<ol class="flights">${rungs.map((one, n) => rung(one, n, rungs, prefix, back))}</ol>`
}

function rung(one, n, rungs, prefix, back) {
  const last = n === rungs.length - 1
  const fails = one.on_failure !== 'next' ? one.on_failure : last ? 'end' : one.verify ? 'next' : 'always'
  const refused = one.on_refusal === 'next' && last ? 'end' : one.on_refusal
  return html`<li class="flight ${level(one)}" id="${prefix}-${n + 1}" tabindex="-1">
    <h3><span class="flight-number" aria-hidden="true">${n + 1}</span> ${one.name} <code>${one.do}</code></h3>
    <p class="disrupts"><span aria-hidden="true">${SHAPES[level(one)]}</span> ${word('rung-disrupts', one.disrupts)}</p>
    ${one.means ? html`<p>${written(one.means)}</p>` : one.do === 'page' ? html`<p>${t('rung-page')}</p>` : nothing}
    <p>${paramsLine(one.params)}</p>
    ${Object.keys(one.when).length ? html`<div class="only"><b>${t('rung-only-if')}</b> ${conditionList(one.when)}</div>` : nothing}
    ${one.after.length ? html`<p class="only"><b>${t('rung-after')}</b> ${one.after.join(', ')}</p>` : nothing}
    <dl class="facts">
      <div><dt>${t('rung-where')}</dt><dd>${word('where', one.where)}</dd></div>
      ${one.repeat ? html`<div><dt>${t('rung-repeat')}</dt><dd>${word('repeat', one.repeat)}</dd></div>` : nothing}
      ${one.timeout_s ? html`<div><dt>${t('rung-timeout')}</dt><dd>${span(one.timeout_s)}</dd></div>` : nothing}
      ${one.retries ? html`<div><dt>${t('rung-retries')}</dt><dd>${one.retries}</dd></div>` : nothing}
    </dl>
    ${one.verify ? html`<p class="helped"><span aria-hidden="true">✓</span> <b>${t('rung-worked')}</b> ${one.verify} ${back ? nothing : html`→ ${t('way-back')}`}</p>` : nothing}
    <p class="failed"><span aria-hidden="true">${back ? '■' : ['next', 'always'].includes(fails) ? '↓' : fails === 'quit' ? '✓' : '■'}</span>
      ${back ? t('follows-back') : t(`follows-${fails}`)}
      ${refused && refused !== one.on_failure && refused !== fails ? html`<span class="small">${t(`refused-${refused}`)}</span>` : nothing}</p>
  </li>`
}

function level(rung) {
  return LEVELS.includes(rung.disrupts) ? rung.disrupts : 'nothing'
}

function jump(event, id) {
  event.preventDefault()
  const to = document.getElementById(id)
  to?.scrollIntoView({ block: 'start', behavior: matchMedia('(prefers-reduced-motion: reduce)').matches ? 'auto' : 'smooth' })
  to?.focus({ preventScroll: true })
}
