// A kernel log from anywhere: what it means, as `gpuward diagnose` says it. Nothing of it is kept.

import { html, nothing } from '../vendor/lit-html/lit-html.js'
import { draw } from '../app.js'
import { post, Problem } from '../net.js'
import { verdict } from '../parts/verdict.js'
import { t } from '../words.js'

const MOST = 1024 * 1024 // characters that the brain takes
const GZIP = [0x1f, 0x8b]

export function title() {
  return t('nav-diagnose')
}

export function view(state) {
  const { own } = state
  const named = Boolean(state.me?.how)
  return html`<h1>${t('nav-diagnose')}</h1>
    <p class="small">${t('diagnose-what')}</p>
    <form class="card diagnose" id="diagnose" @submit=${(event) => submit(event, state)}
      @dragover=${(event) => event.preventDefault()} @drop=${(event) => drop(event, state)}>
      <label>${t('diagnose-log')}<textarea name="log" rows="9" spellcheck="false" autocomplete="off" autocapitalize="off" .value=${own.text ?? ''}
        placeholder="[ 5012.500123] NVRM: Xid (PCI:0000:3b:00): 79, pid=4711, …" @input=${(event) => { take(state, event.target.value); draw() }}></textarea></label>
      <div class="diagnose-row">
        <label>${t('diagnose-file')}<input type="file" accept=".log,.txt,.gz,text/*" @change=${(event) => read(event.target.files[0], state)}></label>
        <label>${t('diagnose-driver')}<input name="driver" pattern="\\d+(\\.\\d+)*" inputmode="decimal" autocomplete="off" placeholder="580.82" .value=${own.driver ?? ''}
          @input=${(event) => { own.driver = event.target.value }}></label>
      </div>
      ${own.cut ? html`<p class="waits" role="status">${t('diagnose-cut', { n: own.cut })}</p>` : nothing}
      ${own.wrong ? html`<p class="banner bad" role="alert">${own.wrong}</p>` : nothing}
    </form>
    <div aria-live="polite">${own.busy ? html`<p class="start" aria-busy="true">${t('diagnose-busy')}</p>` : own.found ? verdict(own.found) : nothing}</div>
    <div class="bar">${named ? html`
      ${own.text ? html`<button @click=${() => { Object.assign(own, { text: '', found: null, wrong: '', cut: 0 }); draw() }}>${t('diagnose-clear')}</button>` : nothing}
      <button type="submit" form="diagnose" class="main" ?disabled=${!own.text?.trim() || own.busy}>${t('verb-diagnose')}</button>`
      : html`<a class="button main" href="/sign-in">${t('log-in-to-diagnose')}</a>`}</div>`
}

async function submit(event, state) {
  event.preventDefault()
  const { own } = state
  if (own.busy || !own.text?.trim()) return
  Object.assign(own, { busy: true, wrong: '', found: null })
  draw()
  try {
    own.found = await post('diagnose', { log: own.text, driver: (own.driver ?? '').trim() })
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    own.wrong = error.message || t('no-answer')
  } finally {
    own.busy = false
    draw()
  }
  if (own.found) requestAnimationFrame(() => requestAnimationFrame(show))
}

function show() {
  const heading = document.getElementById('verdict')
  heading?.scrollIntoView({ block: 'start', behavior: matchMedia('(prefers-reduced-motion: reduce)').matches ? 'auto' : 'smooth' })
  heading?.focus({ preventScroll: true })
}

function drop(event, state) {
  event.preventDefault()
  const [file] = event.dataTransfer.files
  if (file) read(file, state)
  else take(state, event.dataTransfer.getData('text/plain'))
  draw()
}

/** Reads a file, a packed one too. */
async function read(file, state) {
  if (!file) return
  const { own } = state
  own.wrong = ''
  try {
    const begins = new Uint8Array(await file.slice(0, GZIP.length).arrayBuffer())
    const packed = GZIP.every((byte, n) => begins[n] === byte)
    take(state, await (packed ? new Response(file.stream().pipeThrough(new DecompressionStream('gzip'))).text() : file.text()))
  } catch (error) {
    own.wrong = t('diagnose-unreadable', { name: file.name, why: error.message })
  }
  draw()
}

/** Takes a log, of a longer one the end: that is what the machine said last. */
function take({ own }, text) {
  const from = text.length > MOST ? text.indexOf('\n', text.length - MOST) + 1 || text.length - MOST : 0
  own.cut = from ? text.slice(0, from).split('\n').length - 1 : 0
  own.text = text.slice(from)
  own.found = null
}
