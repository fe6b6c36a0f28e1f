// One node: how it stands, what is done about it, what it is made of, and what became of it and of its cards.

import { html, nothing } from '../vendor/lit-html/lit-html.js'
import { draw } from '../app.js'
import { get, path } from '../net.js'
import { incidentLine, places, runLine, some, toldAt, toldOf } from '../parts/briefs.js'
import { plots } from '../parts/plots.js'
import { span, time } from '../parts/times.js'
import { askForget, askHold, askRelease, askReturn, askStart, may, verbButton } from '../parts/verbs.js'
import { either, t, word } from '../words.js'
import { nodeState } from './fleet/shapes.js'

const WHERE = ['rack', 'leaf', 'pod', 'chassis']

export function title(state) {
  return state.at.args.name
}

export async function load(at, { signal }) {
  return get(`nodes/${path(at.args.name)}`, { signal })
}

/** Is a note about what is shown? */
export function concerns(note, state) {
  const { name } = state.at.args
  const ids = [...(state.data?.incidents ?? []), ...(state.data?.past ?? [])].map((one) => one.id)
  return note.scope.split('/').includes(name) || ids.includes(note.incident) || note.kind.startsWith('operator.')
}

export function view(state) {
  const { data } = state
  return html`<article class="node">
    ${head(data)}
    ${stands(state, data)}
    <section class="part"><h2>${t('node-open')} <span class="count">${data.incidents.length || ''}</span></h2>
      ${data.incidents.length ? html`<ul class="rows">${data.incidents.map(incidentLine)}</ul>` : html`<p class="good">${t('node-none-open')}</p>`}</section>
    ${cards(state, data)}
    ${plots(state, data.node.name, { incidents: [...data.incidents, ...data.past] })}
    ${inventory(state, data)}
    ${done(state, data)}
    ${data.past.length ? html`<section class="part"><h2>${t('node-past')} <span class="count">${data.past.length}</span></h2>
      ${some(state, 'allPast', data.past, incidentLine, { draw })}</section>` : nothing}
    ${data.not_known.length ? html`<section class="card"><h2>${t('node-not-known')}</h2><ul class="plain small">${data.not_known_texts.map((one) => html`<li>${either(one)}</li>`)}</ul></section>` : nothing}
    ${actions(state, data)}
  </article>`
}

function head({ node, word: stands, booted_at: booted, fabric }) {
  const beat = node.beat_age_s === null ? t('node-no-beat') : t('node-beat', { span: span(node.beat_age_s) })
  const facts = [node.version ? t('node-agent', { version: node.version }) : '', node.spooled ? t('node-spooled', { n: node.spooled }) : '',
    node.dropped ? t('node-dropped', { n: node.dropped }) : '', Math.abs(node.clock_ahead_s ?? 0) >= 1 ? t(node.clock_ahead_s > 0 ? 'node-clock' : 'node-clock-behind', { span: span(Math.abs(node.clock_ahead_s)) }) : '']
  return html`<header class="head">
    <p class="line">${nodeState(stands)} ${node.alive ? nothing : html`<span class="bad-text">${t('node-not-heard')}</span>`}</p>
    <h1>${node.name}</h1>
    <p class="where">${WHERE.filter((by) => node[by]).map((by, n) => html`${n ? ' · ' : nothing}${t(`by-${by}`)} ${by === 'chassis' ? node[by]
      : html`<a href="/fleet?by=${by}&q=${encodeURIComponent(`${by}:${quoted(node[by])}`)}">${node[by]}</a>`}`)}${fabric && fabric !== 'default' ? html` · ${t('node-fabric')} ${fabric}` : nothing}</p>
    <p class="small">${[beat, ...facts].filter(Boolean).join(' · ')}${booted ? html` · ${t('node-booted')} ${time(booted)}` : nothing}</p>
    <p class="small links"><a href="/fleet?q=${encodeURIComponent(node.name)}">${t('node-on-map')}</a> · <a href="/audit?scope=${encodeURIComponent(`*/${node.name}*`)}">${t('node-audit')}</a></p>
  </header>`
}

function quoted(value) {
  return /\s/.test(value) ? `"${value}"` : value
}

/** What keeps it out of service or from being touched, and what runs on it. */
function stands(state, { holds, drains, jobs, jobs_at: asked }) {
  if (!holds.length && !drains.length && jobs === null) return nothing
  return html`<section class="card">
    ${holds.length ? html`<h2>${t('node-holds')}</h2><ul class="plain">${holds.map((one) => html`<li>‖ <code>${one.scope}</code> ${one.who}: ${one.why}
      <span class="small">${time(one.since)} – ${one.until ? time(one.until) : t('until-released')}</span>
      ${verbButton(state, 'release', t('verb-release'), () => askRelease(state, one.id, t('release-what', one)))}</li>`)}</ul>` : nothing}
    ${drains.length ? html`<h2>${t('node-drains')}</h2><ul class="plain">${drains.map((one) => html`<li>
      <a href="/incidents/${encodeURIComponent(one.incident)}">${one.incident}</a> <span class="small">${t('since')} ${time(one.since)}${one.sure ? nothing : html` · ${t('node-drain-unsure')}`}</span></li>`)}</ul>` : nothing}
    ${jobs === null ? nothing : html`<h2>${t('node-jobs')}</h2>
      <p>${jobs.length ? jobs.join(', ') : t('node-no-jobs')} <span class="small">${t('node-asked')} ${time(asked)}</span></p>`}
  </section>`
}

function cards(state, { node, cards: all }) {
  if (!all.length) return nothing
  const gpus = all.filter((one) => one.component.startsWith('gpu/'))
  const others = all.filter((one) => !gpus.includes(one))
  return html`<section class="part"><h2>${t('node-cards')} <span class="count">${all.length}</span></h2>
    <div class="parts-grid">${[...gpus, ...others].map((one) => card(state, node, one))}</div></section>`
}

function card(state, node, one) {
  const moved = one.places.filter((place) => place.node !== node.name || place.component !== one.component)
  return html`<details class="card part-card" ?open=${one.word !== 'well'}>
    <summary>${nodeState(one.word)} <code>${one.component}</code>${one.serial ? html` <span class="small">${one.serial}</span>` : nothing}${one.incidents.length ? html` <span class="count">${t('card-incidents', { n: one.incidents.length })}</span>` : nothing}</summary>
    ${toldOf(one.told)}
    <p class="small">${t('told-at')} ${toldAt(one)}</p>
    ${moved.length ? html`<h3>${t('card-places')}</h3>${places(one.places, node.name)}` : nothing}
    ${one.incidents.length ? html`<h3>${t('nav-incidents')}</h3>${some(state, `card ${one.component}`, one.incidents, incidentLine, { most: 4, draw })}` : nothing}
    ${one.serial ? html`<p><a href="/cards/${encodeURIComponent(one.serial)}">${t('card-page')}</a></p>` : nothing}
    ${verbButton(state, 'hold', t('verb-hold'), () => askHold(state, scopeOf(node.name, one.component), [`node/${node.name}`]))}
  </details>`
}

function scopeOf(node, component) {
  const [kind, ...name] = component.split('/')
  return `${kind}/${node}/${name.join('/')}`
}

function inventory(state, { inventory: now, before }) {
  if (!now) return nothing
  return html`<section class="card"><h2>${t('node-inventory')}</h2>
    ${toldOf(now.told, ['digest'])}<p class="small">${t('told-at')} ${toldAt(now)}</p>
    ${before.length ? html`<details><summary>${t('node-before', { n: before.length })}</summary>${before.map((one) => html`
      <h3>${toldAt(one)}</h3>${toldOf(one.told, ['digest'])}`)}</details>` : nothing}</section>`
}

function done(state, { runs, said }) {
  if (!runs.length && !said.length) return nothing
  return html`<section class="card"><h2>${t('node-done')}</h2>
    ${runs.length ? html`<h3>${t('node-runs')}</h3>${some(state, 'allRuns', runs, runLine, { tag: 'plain', draw })}` : nothing}
    ${said.length ? html`<h3>${t('node-said')}</h3>${some(state, 'allSaid', said, (one) => html`<li><span class="small">${time(one.at)} ${word('note', one.kind)}</span> ${one.text}</li>`, { tag: 'notes', draw })}` : nothing}
  </section>`
}

function actions(state, { node, incidents, drains }) {
  if (!may(state, 'hold')) return nothing
  return html`<div class="bar">
    ${verbButton(state, 'hold', t('verb-hold'), () => askHold(state, `node/${node.name}`), { main: incidents.length > 0 })}
    ${drains.length ? verbButton(state, 'return', t('verb-return'), () => askReturn(state, node.name)) : nothing}
    ${node.alive ? verbButton(state, 'start', t('verb-start'), () => askStart(state, node.name)) : nothing}
    ${node.alive ? nothing : verbButton(state, 'forget', t('verb-forget'), () => askForget(state, node.name), { bad: true })}
  </div>`
}
