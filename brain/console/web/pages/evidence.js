// An evidence bundle, open: its files, and the text of one. A node has packed it, so all of it is shown as plain text and no more.

import { html, nothing } from '../vendor/lit-html/lit-html.js'
import { repeat } from '../vendor/lit-html/directives/repeat.js'
import { ask, draw } from '../app.js'
import { bytes, get, path, query } from '../net.js'
import { inert } from '../parts/inert.js'
import { size } from '../parts/sizes.js'
import { moment } from '../parts/times.js'
import { t } from '../words.js'

const SHOWN = 262_144 // bytes of a text; the rest is in the download
const MOST_LISTED = 500 // before somebody narrows the names

export function title(state) {
  return `${t('bundle')} · ${state.at.args.id}`
}

/** The list is asked for once, and each file once: a bundle does not change, and to open it is work for the brain. */
export async function load(at, { signal, state }) {
  const { id } = at.args
  const list = state.own.list ?? await get(`evidence-files/${encoded(id)}`, { signal })
  state.own.list = list
  const number = Number(at.query.file ?? -1)
  const file = list.files.find((one) => one.file === number)
  if (!file?.text) return { list, file, text: '' }
  const texts = (state.own.texts ??= new Map())
  if (!texts.has(number)) {
    const found = await bytes(`evidence-file/${encoded(list.bundle)}${query({ file: number, most: SHOWN })}`, { signal })
    texts.set(number, new TextDecoder().decode(found))
  }
  return { list, file, text: texts.get(number) }
}

export function view(state) {
  const { list, file } = state.data
  const [node] = list.bundle.split('/')
  return html`<header class="head">
      <h1>${t('bundle')}</h1>
      <p><code>${list.bundle}</code></p>
      <p>${t('evidence-of')} <a href="/nodes/${encodeURIComponent(node)}">${node}</a> · ${t('evidence-count', { n: list.files.length })} · ${size(list.size)}</p>
      <p class="actions"><a class="button" download href="/api/v1/evidence/${encoded(list.bundle)}">${t('evidence-download')}</a></p>
      ${list.cut ? html`<p class="waits">${t('evidence-cut')} ${list.cut}</p>` : nothing}
      ${list.left_out ? html`<p class="small">${t('evidence-left-out', { n: list.left_out })}</p>` : nothing}
    </header>
    <div class="bundle">${names(state)}${file ? shown(state) : html`<p class="nothing bundle-none">${list.files.length ? t('evidence-choose') : t('evidence-empty')}</p>`}</div>`
}

/** On a phone the text is below the list: it comes into sight. */
export function drawn(state) {
  const number = state.data?.file?.file
  if (number === undefined || state.own.seen === number) return
  state.own.seen = number
  const box = document.getElementById('file')
  if (box && box.getBoundingClientRect().top > innerHeight * 0.7) box.scrollIntoView()
}

function names(state) {
  const { list, file } = state.data
  const wanted = (state.own.wanted ?? '').toLowerCase()
  const found = wanted ? list.files.filter((one) => one.name.toLowerCase().includes(wanted)) : list.files
  return html`<nav class="bundle-files" aria-label=${t('evidence-files')}>
    ${list.files.length > 8 ? html`<label>${t('evidence-find')}<input type="search" .value=${state.own.wanted ?? ''} @input=${(event) => { state.own.wanted = event.target.value; draw() }}></label>` : nothing}
    <ul class="plain">${repeat(found.slice(0, MOST_LISTED), (one) => one.file, (one) => html`<li>
      <a href="?file=${one.file}" @click=${(event) => chosen(event, one.file)} aria-current=${one.file === file?.file ? 'true' : nothing}><bdi>${one.name}</bdi>
        <span class="small">${size(one.size)}${one.text ? nothing : html` · ${t('evidence-no-text')}`}</span></a></li>`)}</ul>
    ${found.length > MOST_LISTED ? html`<p class="small">${t('evidence-more', { n: found.length - MOST_LISTED })}</p>` : nothing}
  </nav>`
}

/** Without a step in the browser's history: the list stays. */
function chosen(event, number) {
  if (event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
  event.preventDefault()
  ask({ file: number })
}

function shown(state) {
  const { list, file, text } = state.data
  const href = `/api/v1/evidence-file/${encoded(list.bundle)}?file=${file.file}`
  return html`<section class="card bundle-file" id="file" aria-labelledby="file-name">
    <h2 id="file-name"><bdi>${file.name}</bdi></h2>
    <p class="small">${size(file.size)}${file.at ? html` · ${moment(file.at)}` : nothing}</p>
    <p class="actions"><a class="button" download href=${href}>${t('evidence-save')}</a></p>
    ${file.text ? html`<pre class="bundle-text" tabindex="0" aria-label=${t('evidence-text')}><code>${inert(text)}</code></pre>` : html`<p class="nothing">${t('evidence-binary')}</p>`}
    ${file.text && file.size > SHOWN ? html`<p class="small">${t('evidence-first', { shown: size(SHOWN), all: size(file.size) })}</p>` : nothing}
  </section>`
}

function encoded(id) {
  return path(...id.split('/'))
}
