// Whose jobs ran on the nodes of an incident: a line each, or why that is not known and who must do what.

import { html, nothing } from '../vendor/lit-html/lit-html.js'
import { time } from './times.js'
import { t, word } from '../words.js'

/** `hit`: of the incident, as the API has it; an earlier brain has none. */
export function whose(hit) {
  if (!hit) return nothing
  return html`
    ${hit.known === 'known' ? nothing : html`<p class="unknown">${word('hit', hit.known)}</p>`}
    ${hit.known === 'known' && !hit.jobs.length ? html`<p>${t('hit-nobody')}</p>` : nothing}
    ${hit.jobs.length ? html`<ul class="plain jobs">${hit.jobs.map(line)}</ul>` : nothing}
    ${hit.more_jobs ? html`<p class="small">${t('hit-more-jobs', { n: hit.more_jobs })}</p>` : nothing}
    ${hit.why ? html`<p class="small bad-text">${t('hit-silent-of')} ${hit.why}</p>` : nothing}
    ${hit.left_out ? html`<p class="small">${t('hit-left-out', { n: hit.left_out })}</p>` : nothing}
    ${hit.since ? html`<p class="small">${t('hit-known-since')} ${time(hit.since)}${hit.at === hit.since ? nothing : html` · ${t('hit-as-of')} ${time(hit.at)}`}</p>` : nothing}`
}

function line(job) {
  const name = job.name && job.name !== job.id.split('/').at(-1)
  return html`<li class=${job.gone_at ? 'gone' : ''}>${t('hit-job')} <strong>${job.id}</strong>${name ? html` (${job.name})` : nothing}${job.user
    ? html` ${t('hit-of')} <strong>${job.user}</strong>` : nothing}: ${share(job)}${job.gpus ? html` · ${t('hit-gpus', { n: job.gpus })}` : nothing}
    ${job.gone_at ? html`<span class="small">${t('hit-gone')} ${time(job.gone_at)}</span>` : nothing}</li>`
}

function share({ here, nodes, on }) {
  if (!nodes || nodes < here) return t('hit-on', { nodes: on.join(', ') })
  if (nodes === 1) return t('hit-only-node')
  return here === nodes ? t('hit-all', { n: nodes }) : t('hit-share', { here, n: nodes })
}
