// Exactly what an approval would be for: what the brain says, in one place, wherever one is asked for.

import { html, nothing } from '../vendor/lit-html/lit-html.js'
import { language, t, word } from '../words.js'
import { span } from './times.js'

/** `wanted`: the `approval` of an item of /needs or of a run of /explain. */
export function exactly(wanted) {
  return html`<p>${t('approve-what')}</p>
    <p class="exact"><strong>${wanted.rung}</strong> <code>${wanted.what.replace(`${wanted.rung}: `, '')}</code></p>
    <p>${t('disrupts')}: <b>${word('disrupts', wanted.disrupts)}</b>${wanted.repeat === 'never' ? ` · ${t('never-twice')}` : nothing}</p>
    <p>${wanted.jobs === null ? t('jobs-unknown') : wanted.jobs.length ? html`${t('jobs-there')} <code>${wanted.jobs.slice(0, 8).join(', ')}</code>${wanted.jobs.length > 8 ? ` +${wanted.jobs.length - 8}` : nothing}` : t('jobs-none')}</p>
    <p class="small">${wanted.why}${language() === 'zh' ? '。' : '. '}${t('approve-ends', { span: span(wanted.valid_s) })}</p>`
}
