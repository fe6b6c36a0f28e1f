// One shape and one colour for each state of a node, the same on the map, in its legend and in lists. Paths lie in a square of 1.

import { html, svg } from '../../vendor/lit-html/lit-html.js'
import { word } from '../../words.js'

const SQUARE = 'M.06.06H.94V.94H.06Z'

/**
 * `path` is filled with `colour` (a variable of the style), `over` with the page's own, on top of it. The quiet ones are flat
 * squares; whatever needs eyes has an outline of its own.
 */
export const SHAPES = {
  needs_human: { colour: '--bad', path: 'M.5 0L1 1H0Z', over: 'M.45.36H.55V.7H.45ZM.45.77H.55V.88H.45Z' },
  healing: { colour: '--accent', path: 'M.5 0A.5.5 0 0 1 .5 1A.5.5 0 0 1 .5 0Z', over: 'M.5.14V.86A.36.36 0 0 1 .5.14Z' },
  unreachable: { colour: '--ink', path: 'M.16 0L.5.34L.84 0L1 .16L.66.5L1 .84L.84 1L.5.66L.16 1L0 .84L.34.5L0 .16Z' },
  drained: { colour: '--soft', path: SQUARE, over: 'M.2.3H.8V.42H.2ZM.2.58H.8V.7H.2Z' },
  suspect: { colour: '--warn', path: 'M.5 0L1 .5L.5 1L0 .5Z' },
  well: { colour: '--well', path: SQUARE },
  unknown: { colour: '--soft', path: 'M.06.06H.94V.94H.06ZM.2.2V.8H.8V.2Z' },
}

/** The shape of a state as a picture beside its word. */
export function nodeShape(state) {
  const one = SHAPES[state] ?? SHAPES.unknown
  return html`<svg class="node-shape ${state}" viewBox="0 0 1 1" width="14" height="14" aria-hidden="true" focusable="false">
    ${svg`<path class="under" fill-rule="evenodd" d=${one.path}></path>`}${one.over ? svg`<path class="over" d=${one.over}></path>` : ''}</svg>`
}

/** A state with its shape and its word. */
export function nodeState(state) {
  return html`<span class="node-state">${nodeShape(state)} ${word('node-state', state)}</span>`
}
