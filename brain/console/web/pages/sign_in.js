// Coming in: by the identity provider, by a token, or by a link that `gpuward console` makes.

import { html, nothing } from '../vendor/lit-html/lit-html.js'
import { draw, go, identify } from '../app.js'
import { getAt, posted, Problem } from '../net.js'
import { wanted } from '../parts/wanted.js'
import { t } from '../words.js'

export function title() {
  return t('log-in')
}

export async function load(at, { state }) {
  const code = location.hash.slice(1)
  if (code) {
    history.replaceState({}, '', location.pathname)
    try {
      await posted('/login/once', { code })
      await come()
    } catch (error) {
      if (!(error instanceof Problem)) throw error
      state.own.wrong = error.message || t('no-answer')
    }
  }
  return getAt('/login/ways')
}

export function view(state) {
  return html`<section class="card narrow"><h1>${t('log-in')}</h1>
    ${state.own.wrong ? html`<p class="banner bad" role="alert">${state.own.wrong}</p>` : nothing}
    ${state.data.provider ? html`<p><a class="button main" href="/login">${t('log-in-provider')}</a></p>` : nothing}
    <form @submit=${(event) => submit(event, state)}>
      <label>${t('token')}<input name="token" type="password" required autocomplete="current-password" ?autofocus=${!state.data.provider}></label>
      <p class="actions"><button type="submit" class=${state.data.provider ? '' : 'main'} ?disabled=${state.own.busy}>${t('log-in')}</button></p>
    </form>
    <p class="small">${t('log-in-how')}</p>
    <pre><code>gpuward console</code></pre>
  </section>`
}

async function submit(event, state) {
  event.preventDefault()
  const { token } = Object.fromEntries(new FormData(event.target))
  Object.assign(state.own, { busy: true, wrong: '' })
  draw()
  try {
    await posted('/login/session', {}, { Authorization: `Bearer ${token.trim()}` })
    await come()
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    state.own.wrong = error.message || t('no-answer')
  } finally {
    state.own.busy = false
    draw()
  }
}

async function come() {
  await identify()
  await go(wanted() || '/', { replace: true })
}
