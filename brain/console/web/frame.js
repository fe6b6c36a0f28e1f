// What stands around every page: where one can go, whether the brain is heard, what came of what somebody did.

import { html, nothing } from './vendor/lit-html/lit-html.js'
import { draw, logOut, speak, theme } from './app.js'
import { dialog } from './parts/dialog.js'
import { clock } from './parts/times.js'
import * as words from './words.js'

const { t } = words
const WAYS = [
  ['/', 'now', 'nav-now'],
  ['/incidents', 'incidents', 'nav-incidents'],
  ['/fleet', 'fleet', 'nav-fleet'],
  ['/rules', 'rules', 'nav-rules'],
  ['/rehearse', 'rehearse', 'nav-rehearse'],
  ['/diagnose', 'diagnose', 'nav-diagnose'],
  ['/reports', 'reports', 'nav-reports'],
  ['/audit', 'audit', 'nav-audit'],
]
const BELONGS = { incident: 'incidents', evidence: 'incidents', node: 'fleet', card: 'fleet', rule: 'rules', runbook: 'rules' }

/** Returns the whole document's content. */
export function frame(state) {
  return html`
    <a class="skip" href="#main">${t('skip')}</a>
    <header class="top">
      <a class="brand" href="/"><img src="/web/icon.svg" alt="" width="26" height="26"><span>gpuward</span></a>
      ${state.status ? html`<span class="cell" title=${t('cell-of', { brain: state.status.brain })}>${state.status.cell}</span>` : nothing}
      ${state.me ? ways(state) : nothing}
      <button class="menu-button" aria-expanded=${state.menu ? 'true' : 'false'} aria-controls="menu"
        @click=${() => { state.menu = !state.menu; draw() }}><span aria-hidden="true">☰</span><span class="hidden">${t('menu')}</span></button>
    </header>
    ${state.menu ? menu(state) : nothing}
    ${banners(state)}
    <main id="main" tabindex="-1">${content(state)}</main>
    <div class="said-place" role="status" aria-live="polite">${state.said && !state.dialog ? said(state) : nothing}</div>
    ${state.dialog ? dialog(state) : nothing}`
}

function ways(state) {
  const here = BELONGS[state.at?.page] ?? state.at?.page
  return html`<nav class="ways" aria-label=${t('pages')}>
    ${WAYS.map(([path, page, label]) => html`<a href=${path} aria-current=${page === here ? 'page' : nothing}>${t(label)}</a>`)}
  </nav>`
}

function menu(state) {
  const themes = [['', 'theme-system'], ['light', 'theme-light'], ['dark', 'theme-dark']]
  const chosen = words.remembered('gpuward-theme')
  return html`<section id="menu" class="menu" aria-label=${t('menu')}>
    ${state.me ? html`<p>${state.me.how ? t('you-are', { name: state.me.name, role: words.word('role', state.me.role) }) : t('you-only-read')}</p>` : nothing}
    <p>${state.me?.how ? html`<button @click=${logOut}>${t('log-out')}</button>` : html`<a class="button" href="/sign-in">${t('log-in')}</a>`}</p>
    <p class="choices" role="group" aria-label=${t('language')}>${Object.entries(words.LANGUAGES).map(([code, name]) => html`
      <button lang=${code} aria-pressed=${words.language() === code ? 'true' : 'false'}
        @click=${() => speak(code)}>${name}</button>`)}</p>
    <p class="choices" role="group" aria-label=${t('theme')}>${themes.map(([value, label]) => html`
      <button data-theme-choice=${value} aria-pressed=${chosen === value ? 'true' : 'false'} @click=${() => theme(value)}>${t(label)}</button>`)}</p>
    ${state.status ? html`<p class="small">${t('version-line', { version: state.status.version, pack: state.status.pack })}</p>` : nothing}
  </section>`
}

function banners(state) {
  const { status } = state
  return html`
    ${state.connected ? nothing : html`<p class="banner bad" role="alert">${t('offline', { since: state.since ? clock(state.since) : '–' })}</p>`}
    ${state.behind ? html`<p class="banner warn" role="alert">${t('behind', { since: state.since ? clock(state.since) : '–' })}</p>` : nothing}
    ${status && !status.connected ? html`<p class="banner bad" role="alert">${t('no-broker')}</p>` : nothing}
    ${status && !status.caught_up ? html`<p class="banner warn" role="alert">${t('still-reading')}</p>` : nothing}
    ${status?.stopped ? html`<p class="banner bad" role="alert">${status.stopped}</p>` : nothing}
    ${(status?.troubles ?? []).map((one) => html`<p class="banner warn" role="alert">${one.cause === 'nobody_leads' ? t('nobody-leads') : one.text}</p>`)}`
}

function content(state) {
  if (state.problem) {
    return html`<section class="card"><h1>${t('problem-title')}</h1><p>${state.problem.message || t('no-answer')}</p></section>`
  }
  if (!state.page || (state.page.load && !state.data)) return html`<p class="start" aria-busy="true">${t('loading')}</p>`
  return state.page.view(state)
}

/** Told when no question lies over the page: what is under one is not read out. */
function said(state) {
  return html`<div class=${state.said.bad ? 'said bad' : 'said'}>
    <span>${state.said.text}</span>
    <button aria-label=${t('dismiss')} @click=${() => { state.said = null; draw() }}>×</button>
  </div>`
}

