// A report as people read it: the same templates on the page and in the file for mail.

import { html, nothing } from '../vendor/lit-html/lit-html.js'
import { either, t, word } from '../words.js'
import { energy, used } from './energy.js'
import { scopeMark, severity } from './marks.js'
import { range, span, stamp, time } from './times.js'

/** From when until when. `data`: what pages/reports.js has loaded. */
export function period({ report, from, to }) {
  const cut = report.reaches && Date.parse(report.reaches) > from * 1000
  return html`<strong>${range(from * 1000, to * 1000)}</strong>
    ${cut ? html`<br><span class="small">${t('report-reaches')} ${stamp(report.reaches)}</span>` : nothing}
    ${report.whole ? nothing : html`<br><span class="small">${t('report-not-whole')}</span>`}`
}

/** The report. */
export function report(state) {
  const { report: found, before, shift } = state.data
  const spent = used(state, state.data)
  const unknown = [...found.not_known_texts, ...(spent.data?.not_known_texts ?? [])]
  return html`${shift ? handOver(shift) : nothing}
    ${figures(found, before?.total)}
    ${causes(found.causes)}
    ${nodes(found.nodes)}
    ${tenants(found.tenants ?? [])}
    ${jobs(found.jobs)}
    ${energy(spent)}
    ${unknown.length ? html`<section class="card"><h2>${t('report-not-known')}</h2><ul class="plain small">${unknown.map((one) => html`<li>${either(one)}</li>`)}</ul></section>` : nothing}`
}

function handOver({ needs, notes, holds }) {
  return html`
    <section class="card"><h2>${t('report-needs')} <span class="count">${needs.people_count || ''}</span></h2>
      ${needs.people.length ? list(needs.people) : html`<p class="good">✓ ${t('report-needs-none')}</p>`}</section>
    <section class="card"><h2>${t('report-holds')} <span class="count">${holds.length || ''}</span></h2>
      ${holds.length ? html`<ul class="plain">${holds.map((one) => html`<li><strong>${one.who}</strong> · ${scopeMark(one.scope)} · ${one.why}
        <span class="small">${t('since')} ${time(one.since)}, ${one.until ? html`${t('until')} ${time(one.until)}` : t('report-no-end')}</span></li>`)}</ul>` : html`<p>${t('report-holds-none')}</p>`}</section>
    <section class="card"><h2>${t('report-healed')} <span class="count">${needs.healed.length || ''}</span></h2>
      ${needs.healed.length ? html`<ul class="plain">${needs.healed.map((one) => html`<li>${incident(one)} ${scopeMark(one.scope, one.node)}
        <span class="small">${time(one.closed_at)}${one.runbook ? html` · ${one.runbook}` : nothing} · ${one.text}</span></li>`)}</ul>` : html`<p>${t('report-healed-none')}</p>`}
      ${needs.healed_more ? html`<p class="small">${t('report-more')}</p>` : nothing}</section>
    <section class="card"><h2>${t('report-said')}</h2>
      ${notes.notes.length ? html`<ul class="plain">${notes.notes.map((one) => html`<li><span class="small">${time(one.at)}</span> ${one.text}</li>`)}</ul>` : html`<p>${t('report-said-none')}</p>`}
      ${notes.next ? html`<p class="small">${t('report-more')}</p>` : nothing}</section>`
}

function list(needs) {
  return html`<ul class="plain">${needs.map((one) => html`<li>${one.state ? incident(one) : html`<strong>${word('need', one.kinds[0])}</strong>`} ${one.scope ? scopeMark(one.scope, one.node) : nothing}
    <span class="small">${one.since ? html`${t('since')} ${time(one.since)} · ` : nothing}${one.text}${one.acked_by ? html` · ✓ ${one.acked_by}` : nothing}</span></li>`)}</ul>`
}

function incident(one) {
  return html`${severity(one.severity)} <a href="/incidents/${encodeURIComponent(one.id)}">${one.cause}</a>`
}

const COST = ['detect', 'decide', 'heal', 'hours', 'saved']

function figures({ total: now, people_begin_s: people }, before) {
  const tiles = [
    ['incidents', now.incidents, before?.incidents],
    ['open', now.open],
    ['healed-by', now.healed, before?.healed],
    ['alone', share(now.without_people), before && share(before.without_people)],
    ['hours', hours(now.node_hours), before && hours(before.node_hours)],
    ['saved', hours(now.node_hours_saved), before && hours(before.node_hours_saved)],
    ['detect', took(now.detect), before && took(before.detect), now.detect],
    ['decide', took(now.decide), before && took(before.decide), now.decide],
    ['heal', took(now.heal), before && took(before.heal), now.heal],
  ]
  return html`<section class="card"><h2>${t('report-figures')}</h2><dl class="tiles">${tiles.map(([name, value, was, spread]) => html`
    <div class="tile"><dt>${word('report-figure', name)}</dt><dd><strong>${value}</strong>
      ${spread?.count ? html`<span class="small">${t('report-p90', { span: span(spread.p90_s) })}</span>` : nothing}
      ${was === undefined ? nothing : html`<span class="small">${t('report-before', { value: was })}</span>`}</dd></div>`)}</dl>
    <p class="small">${people ? t('report-saved-how', { span: span(people) }) : t('report-saved-off')}</p></section>`
}

function causes(found) {
  if (!found.length) return html`<section class="card"><h2>${t('report-causes')}</h2><p class="good">✓ ${t('report-quiet')}</p></section>`
  const most = Math.max(...found.map((one) => one.incidents), 1)
  const head = ['cause', 'incidents', '', 'healed-by', 'alone', ...COST]
  return table('report-causes', head, found.map((one) => [
    one.cause, one.incidents, bar(one.incidents, most), one.healed, share(one.without_people), took(one.detect), took(one.decide),
    took(one.heal), hours(one.node_hours), hours(one.node_hours_saved),
  ]))
}

function nodes(found) {
  if (!found.length) return nothing
  const most = Math.max(...found.map((one) => one.incidents), 1)
  return table('report-nodes', ['node', 'incidents', '', 'hours'], found.map((one) => [
    html`<a href="/nodes/${encodeURIComponent(one.node)}">${one.node}</a>`, one.incidents, bar(one.incidents, most), hours(one.node_hours),
  ]))
}

function jobs(found) {
  if (!found.length) return nothing
  const most = Math.max(...found.map((one) => one.incidents), 1)
  return table('report-jobs', ['job', 'tenant', 'incidents', '', ...COST], found.map((one) => [one.job, one.tenant || '–', one.incidents, bar(one.incidents, most), ...cost(one)]))
}

function tenants(found) {
  if (!found.length) return nothing
  const most = Math.max(...found.map((one) => one.incidents), 1)
  return table('report-tenants', ['tenant', 'incidents', '', 'jobs', ...COST], found.map((one) => [
    one.tenant || t('report-energy-nobody'), one.incidents, bar(one.incidents, most), one.jobs, ...cost(one),
  ]))
}

function cost(one) {
  return [took(one.detect), took(one.decide), took(one.heal), hours(one.node_hours), hours(one.node_hours_saved)]
}

function table(name, head, rows) {
  return html`<section class="card"><h2 id=${name}>${t(name)}</h2>
    <div class="wide" role="region" aria-labelledby=${name} tabindex="0"><table><thead><tr>${head.map((one) => (one ? html`<th scope="col">${word('report-figure', one)}</th>` : html`<td></td>`))}</tr></thead>
    <tbody>${rows.map(([first, ...rest]) => html`<tr><th scope="row">${first}</th>${rest.map((one) => html`<td>${one}</td>`)}</tr>`)}</tbody></table></div></section>`
}

/** The number stands beside it: to see is enough. */
function bar(value, most) {
  return html`<svg class="bar-of" viewBox="0 0 100 10" width="100" height="10" preserveAspectRatio="none" aria-hidden="true"><rect width=${Math.max(1, Math.round((100 * value) / most))} height="10" rx="1"></rect></svg>`
}

function share(value) {
  return value === null ? '–' : `${Math.round(100 * value)} %`
}

function took(spread) {
  return spread.median_s === null ? '–' : span(spread.median_s)
}

function hours(value) {
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} h`
}
