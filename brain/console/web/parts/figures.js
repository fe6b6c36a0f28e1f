// Some figures side by side, each with its name: what counts stands large.

import { html, nothing } from '../vendor/lit-html/lit-html.js'

/** `figures`: [[name, value, more]]; `more` is small, below. */
export function figures(list) {
  return html`<dl class="figures">${list.map(([name, value, more]) => html`<div><dt>${name}</dt><dd>${value}${more ? html` <span class="small">${more}</span>` : nothing}</dd></div>`)}</dl>`
}
