// Foreign text as it is read: what would hide, or turn the order of letters round, stands there as its number.

// Control characters but tab and newline; bidirectional overrides and isolates; what has no width, tags. Written by numbers, as some end a line
const ACTING = new RegExp('[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u180e\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff\\ufff9-\\ufffb\\u{e0000}-\\u{e0fff}]', 'gu')

/** Returns the text, in which nothing acts; lines stay lines. */
export function inert(text) {
  return text.replace(/\r\n/g, '\n').replace(ACTING, (one) => `\\u${one.codePointAt(0).toString(16).padStart(4, '0')}`)
}

/**
 * Makes what a page is about to draw inert: each text in a template, whoever wrote it. What is handed back to the brain is not
 * drawn, and stays as it is. `value`: whatever lit-html takes; fresh templates are changed in place, data are not.
 */
export function made(value) {
  if (typeof value === 'string') return value.search(ACTING) < 0 ? value : inert(value)
  if (Array.isArray(value)) return value.map(made)
  if (value?._$litType$ !== undefined) value.values.forEach((one, n) => { value.values[n] = made(one) })
  else if (value?._$litDirective$ !== undefined) value.values.forEach((one, n) => { value.values[n] = given(one) })
  return value
}

/** What a directive (`repeat`, `live`) is given: the templates that it will make, and texts; its items are data. */
function given(value) {
  if (typeof value === 'function') return (...args) => made(value(...args))
  return typeof value === 'string' ? made(value) : value
}
