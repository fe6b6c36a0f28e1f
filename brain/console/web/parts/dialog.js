// A question before something is said on somebody's behalf: what exactly, and what it does.

import { html, nothing } from '../vendor/lit-html/lit-html.js'
import { draw } from '../app.js'
import { t } from '../words.js'

const UNREAD_MS = 500

/**
 * Asks. `asked`: {title, body, fields: [{name, label, value, needed, kind, options}], action, bad, careful, then(values)}. While
 * `then` runs nothing can be pressed; where it returns false the question stays, with what was written and the reason (`refuse`).
 * `bad`, `careful`: Enter says no. Nobody says yes by the second of two taps: the button waits for half a second, and again when
 * the window comes to the front, as what lay above it may have asked for two clicks and gone after the first.
 */
export function askFor(state, asked) {
  state.dialog = { ...asked, busy: false, error: '', before: document.activeElement }
  toBeRead(state)
  requestAnimationFrame(() => requestAnimationFrame(() => {
    const box = document.getElementById('dialog')
    if (!box || box.open) return
    box.showModal()
    box.querySelector('[autofocus]')?.focus()
  }))
}

/** Nobody has read the open question yet, or again. */
function toBeRead(state) {
  const one = state.dialog
  one.from = performance.now() + UNREAD_MS
  draw()
  setTimeout(() => { if (state.dialog === one) draw() }, UNREAD_MS + 20)
}

/** Watches over the question of this page. Once. */
export function guard(state) {
  const came = () => { if (state.dialog && !document.hidden) toBeRead(state) }
  addEventListener('focus', came)
  document.addEventListener('visibilitychange', came)
}

/**
 * Says in the open question why it came to nothing; without one: nothing. `over`: things are not as it says any more, so where there
 * is nothing to write otherwise it cannot be given again, and leads back to the page, which has them.
 */
export function refuse(state, text, { over = false } = {}) {
  if (!state.dialog) return false
  state.dialog.error = text
  state.dialog.over = over && !state.dialog.fields?.length
  draw()
  return true
}

/** The dialog that is open. */
export function dialog(state) {
  const one = state.dialog
  const close = () => {
    state.dialog = null
    draw()
    requestAnimationFrame(() => requestAnimationFrame(() => comeBack(one.before))) // as long as the dialog is there nothing else takes it
  }
  const submit = async (event) => {
    event.preventDefault()
    if (one.busy || performance.now() < one.from) return
    Object.assign(one, { busy: true, error: '' })
    draw()
    const values = Object.fromEntries(new FormData(event.target))
    let done = true
    try {
      done = (await one.then(values)) !== false
    } finally {
      one.busy = false
      if (state.dialog === one && done) close()
      else draw()
    }
  }
  const unread = performance.now() < one.from
  return html`<dialog id="dialog" aria-labelledby="dialog-title" aria-describedby="dialog-what" @cancel=${(event) => { event.preventDefault(); if (!one.busy) close() }}>
    <form method="dialog" @submit=${submit}>
      <h2 id="dialog-title">${one.title}</h2>
      <div id="dialog-what">${one.body ?? nothing}</div>
      ${(one.fields ?? []).map(field)}
      ${one.error ? html`<p class="banner bad" role="alert">${one.error}</p>` : nothing}
      <p class="actions">
        <button type="button" ?disabled=${one.busy} ?autofocus=${one.bad || one.careful} @click=${close}>${t(one.over ? 'look-again' : 'cancel')}</button>
        ${one.over ? nothing : html`<button type="submit" class=${one.bad ? 'bad' : 'main'} ?disabled=${one.busy || unread} ?autofocus=${!one.bad && !one.careful && !one.fields?.length}>${one.action}</button>`}
      </p>
    </form>
  </dialog>`
}

/** Whoever goes by the keyboard is where they were; on the page where that is gone. */
function comeBack(before) {
  const box = before?.isConnected && before !== document.body ? before : document.getElementById('main')
  box?.focus({ preventScroll: true })
}

function field(one) {
  if (one.options) {
    return html`<label>${one.label}<select name=${one.name}>${one.options.map(([value, label]) => html`
      <option value=${value} ?selected=${value === one.value}>${label}</option>`)}</select></label>`
  }
  return html`<label>${one.label}<input name=${one.name} type=${one.kind ?? 'text'} .value=${one.value ?? ''} ?required=${one.needed} maxlength="1000" autocomplete="off"></label>`
}
