// A question before something is said on somebody's behalf: what exactly, and what it does.

import { html, nothing } from '../vendor/lit-html/lit-html.js'
import { draw } from '../app.js'
import { t } from '../words.js'

/**
 * Asks. `asked`: {title, body, fields: [{name, label, value, needed, kind, options}], action, bad, then(values)}. `then` is called
 * once; while it runs nothing can be pressed.
 */
export function askFor(state, asked) {
  state.dialog = { ...asked, busy: false, before: document.activeElement }
  draw()
  requestAnimationFrame(() => requestAnimationFrame(() => {
    const box = document.getElementById('dialog')
    if (!box || box.open) return
    box.showModal()
    box.querySelector('[autofocus]')?.focus()
  }))
}

/** The dialog that is open. */
export function dialog(state) {
  const one = state.dialog
  const close = () => {
    state.dialog = null
    draw()
    one.before?.focus?.()
  }
  const submit = async (event) => {
    event.preventDefault()
    if (one.busy) return
    one.busy = true
    draw()
    const values = Object.fromEntries(new FormData(event.target))
    try {
      await one.then(values)
    } finally {
      if (state.dialog === one) close()
    }
  }
  return html`<dialog id="dialog" aria-labelledby="dialog-title" @cancel=${(event) => { event.preventDefault(); if (!one.busy) close() }}>
    <form method="dialog" @submit=${submit}>
      <h2 id="dialog-title">${one.title}</h2>
      ${one.body ?? nothing}
      ${(one.fields ?? []).map(field)}
      <p class="actions">
        <button type="button" ?disabled=${one.busy} ?autofocus=${one.bad} @click=${close}>${t('cancel')}</button>
        <button type="submit" class=${one.bad ? 'bad' : 'main'} ?disabled=${one.busy} ?autofocus=${!one.bad && !one.fields?.length}>${one.action}</button>
      </p>
    </form>
  </dialog>`
}

function field(one) {
  if (one.options) {
    return html`<label>${one.label}<select name=${one.name}>${one.options.map(([value, label]) => html`
      <option value=${value} ?selected=${value === one.value}>${label}</option>`)}</select></label>`
  }
  return html`<label>${one.label}<input name=${one.name} type=${one.kind ?? 'text'} .value=${one.value ?? ''} ?required=${one.needed} maxlength="1000" autocomplete="off"></label>`
}
