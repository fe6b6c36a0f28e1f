// An address that is no page: what was asked for, and the ways back. The answer that brought this frame has the status 404.

import { html } from '../vendor/lit-html/lit-html.js'
import { t } from '../words.js'

export function title() {
  return t('missing-title')
}

export function view() {
  return html`<section class="card narrow"><h1>${t('missing-title')}</h1>
    <p>${t('missing-what')} <code>${location.pathname}</code></p>
    <p class="actions"><a class="button main" href="/">${t('nav-now')}</a> <a class="button" href="/incidents">${t('nav-incidents')}</a></p>
  </section>`
}
