// The text above the map: which nodes it means. `gpu-01* state:needs_human,suspect -rack:r7`: each part must hold.

import { GROUPS } from './model.js'

const PART = /(-?)(?:([a-z]+):)?(?:"([^"]*)"|(\S+))/gi
const KEYS = ['state', 'severity', 'cause', 'is', ...GROUPS]

/**
 * Returns {shown, count, unknown}: for each node whether the text means it, how many it means, and the words before a colon that say
 * nothing to us. A part without a key is a piece of the name, or a glob; one with a key is a value of it, or a glob, or some with
 * commas between. `-` before it: not those.
 */
export function filter(fleet, text) {
  const shown = new Uint8Array(fleet.n).fill(1)
  const unknown = []
  for (const [, not, key, quoted, plain] of text.matchAll(PART)) {
    const value = quoted ?? plain
    if (!key && value.endsWith(':')) continue // still being typed
    const name = key?.toLowerCase() ?? ''
    if (name && !KEYS.includes(name)) {
      unknown.push(name)
      continue
    }
    const means = meaning(fleet, name, value)
    const wanted = not ? 0 : 1
    for (let node = 0; node < fleet.n; node += 1) if (Number(means(node)) !== wanted) shown[node] = 0
  }
  return { shown, count: shown.reduce((sum, one) => sum + one, 0), unknown }
}

/** Returns the text with `key:value` in it, or without it if it was there. */
export function toggled(text, key, value) {
  const part = `${key}:${/\s/.test(value) ? `"${value}"` : value}`
  const parts = text.match(new RegExp(PART.source, 'gi')) ?? []
  const others = parts.filter((one) => one !== part)
  if (others.length < parts.length) return others.join(' ')
  return [...others.filter((one) => !one.startsWith(`${key}:`)), part].join(' ')
}

function meaning(fleet, key, value) {
  const means = anyOf(value, !key)
  if (!key) return (node) => means(fleet.names[node])
  if (key === 'is') {
    const held = means('held')
    return (node) => held && fleet.held[node] === 1
  }
  if (key === 'state') {
    const words = fleet.words.map(means)
    return (node) => words[fleet.state[node]]
  }
  if (key === 'severity' || key === 'cause') {
    const each = fleet.incidents[key].map(means)
    return (node) => fleet.incident[node] >= 0 && each[fleet.incident[node]]
  }
  const { names, of } = fleet.places[key]
  const each = names.map(means)
  return (node) => of[node] >= 0 && each[of[node]]
}

function anyOf(value, part) {
  const tests = value.split(',').filter(Boolean).map((one) => test(one.toLowerCase(), part))
  return (text) => {
    const low = text.toLowerCase()
    return tests.some((each) => each(low))
  }
}

function test(wanted, part) {
  if (/[*?]/.test(wanted)) {
    const escaped = wanted.replace(/[.+^${}()|[\]\\]/g, '\\$&')
    const pattern = new RegExp(`^${escaped.replace(/\*+/g, '.*').replaceAll('?', '.')}$`, 's')
    return (text) => pattern.test(text)
  }
  return part ? (text) => text.includes(wanted) : (text) => text === wanted
}
