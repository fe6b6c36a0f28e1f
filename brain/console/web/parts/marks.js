// Small things that stand on many pages: severities, states, scopes. A shape or a word stands beside each colour.

import { html, nothing } from '../vendor/lit-html/lit-html.js'
import { word } from '../words.js'

const SHAPES = {
  needs_human: '▲', open: '●', healing: '◐', settling: '◌', recovered: '◑', closed: '✓', explained: '↳',
  held: '‖', approval: '?', intent: '▸', performing: '▶', verifying: '◔', cancelling: '×',
  succeeded: '✓', exhausted: '▲', observed: '◎', cancelled: '×',
}

/** P0 to P3. */
export function severity(value) {
  return html`<span class="severity ${value}" title=${word('severity', value)}>${value}</span>`
}

/** The state of an incident or run. */
export function stateMark(value, prefix = 'state') {
  return html`<span class="state ${value}"><span aria-hidden="true">${SHAPES[value] ?? '·'}</span> ${word(prefix, value)}</span>`
}

/** A scope (`gpu/gpu-01/0000:1b:00`), its node a link. */
export function scopeMark(scope, node = '') {
  const name = node || (/^(?:node|gpu|nic|link|port|service|nvswitch)\/([^/]+)/.exec(scope)?.[1] ?? '')
  if (!name) return html`<code>${scope}</code>`
  const [before, ...after] = scope.split(name)
  return html`<code>${before}<a href="/nodes/${encodeURIComponent(name)}">${name}</a>${after.join(name)}</code>`
}

/** Parameters of an action in one line. */
export function paramsLine(params) {
  const given = Object.entries(params ?? {})
  if (!given.length) return nothing
  return html`<span class="params">${given.map(([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`).join(', ')}</span>`
}
