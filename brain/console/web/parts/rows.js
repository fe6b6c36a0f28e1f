// Lines of lists: an incident in one or two lines that lead to its page.

import { html, nothing } from '../vendor/lit-html/lit-html.js'
import { scopeMark, severity, stateMark } from './marks.js'
import { time } from './times.js'
import { t, why, whyIn } from '../words.js'

/** An incident of /api/v1/incidents. */
export function incidentRow(one) {
  return html`<li class="row">
    <a class="row-link" href="/incidents/${encodeURIComponent(one.id)}">${severity(one.severity)} <strong>${one.cause}</strong></a>
    ${one.asks ? stateMark('approval', 'run') : stateMark(one.state)}
    <span class="row-where">${scopeMark(one.scope, one.node)}</span>
    <span class="small">${time(one.opened_at, { relative: true })}${one.times > 1 ? html` · ${t('came-back', { n: one.times - 1 })}` : nothing}${one.pages?.acked_by ? html` · ✓ ${one.pages.acked_by}` : nothing}</span>
    <span class="row-why" lang=${one.waits ? nothing : whyIn(one)}>${one.waits || why(one)}</span>
  </li>`
}
