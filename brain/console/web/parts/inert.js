// Foreign text as it is read: what would hide, or turn the order of letters round, stands there as its number.

// Control characters but tab and newline; bidirectional overrides and isolates; what has no width. Written by numbers, as some end a line
const ACTING = new RegExp('[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff\\ufff9-\\ufffb]', 'g')

/** Returns the text, in which nothing acts; lines stay lines. */
export function inert(text) {
  return text.replace(/\r\n/g, '\n').replace(ACTING, (one) => `\\u${one.codePointAt(0).toString(16).padStart(4, '0')}`)
}
