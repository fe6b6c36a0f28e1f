// Links to elsewhere: an address in a rule or a log is foreign text, and a browser opens more than pages.

import { html } from '../vendor/lit-html/lit-html.js'

/** A link that opens beside the console; what is no http(s) address stays text. */
export function outside(address) {
  if (!/^https?:\/\//i.test(address)) return html`<code>${address}</code>`
  return html`<a href=${address} rel="noreferrer noopener" target="_blank">${address}</a>`
}
