// Requests to the API. What failed is a Problem, with the words of the brain (RFC 9457): who must do what.

import { heard } from './parts/brain_clock.js'
import { language } from './words.js'

const API = '/api/v1/'
const KEPT = 30 // answers kept with their ETags, so that what has not changed is not sent again; none of past times, which come and go
const WITHIN_MS = 15_000 // an answer that has not begun by then is none: a network can swallow everything without a word
const kept = new Map()

/** What the brain, or the way to it, objects to. `status` 0: the brain did not answer. */
export class Problem extends Error {
  constructor(status, detail, body = {}) {
    super(detail)
    this.status = status
    this.body = body
  }
}

/** Returns the JSON at /api/v1/<path>. `path` begins without a slash and is encoded already (see `path`). */
export async function get(where, { signal } = {}) {
  const key = `${language()} ${where}` // its sentences are told in it
  const old = kept.get(key)
  const headers = old ? { 'If-None-Match': old.tag } : {}
  const answer = await sent(API + where, { headers, signal })
  if (answer.status === 304 && old) return old.body
  const body = await read(answer)
  const tag = answer.headers.get('ETag')
  kept.delete(key)
  if (tag && !/[?&]at=/.test(where)) kept.set(key, { tag, body })
  if (kept.size > KEPT) kept.delete(kept.keys().next().value)
  return body
}

/** Returns the bytes at /api/v1/<path>. */
export async function bytes(where, { signal } = {}) {
  const answer = await sent(API + where, { signal })
  if (!answer.ok) await read(answer)
  try {
    return await answer.arrayBuffer()
  } catch (error) {
    if (error.name === 'AbortError') throw error
    throw new Problem(0, '') // it broke off
  }
}

/** Returns the JSON at a path outside the API, such as /login/ways. */
export async function getAt(where) {
  return read(await sent(where, {}))
}

/** Posts JSON to /api/v1/<path>, and returns the answer with its status: 202 means that a second person must say the same. */
export async function post(where, body) {
  return posted(API + where, body)
}

/** Posts JSON to a path outside the API, such as /logout. */
export async function posted(where, body, headers = {}) {
  const answer = await sent(where, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })
  return { status: answer.status, ...(await read(answer)) }
}

/** Returns a path of its parts, each encoded: names of nodes and jobs can hold anything. */
export function path(...parts) {
  return parts.map(encodeURIComponent).join('/')
}

/** Returns a query string with those values that are not empty. */
export function query(values) {
  const given = Object.entries(values).filter(([, value]) => value !== '' && value !== null && value !== undefined)
  return given.length ? `?${new URLSearchParams(given)}` : ''
}

/** Forgets what was kept, such as when somebody else has logged in. */
export function forget() {
  kept.clear()
}

async function sent(url, options) {
  try {
    const signals = [AbortSignal.timeout(WITHIN_MS), options.signal].filter(Boolean)
    const headers = { 'Accept-Language': language(), ...options.headers } // what the brain says is told in it
    const begun = Date.now()
    const answer = await fetch(url, { credentials: 'same-origin', cache: 'no-store', ...options, headers, signal: AbortSignal.any(signals) })
    heard(answer.headers.get('Date'), begun)
    return answer
  } catch (error) {
    if (options.signal?.aborted) throw error
    throw new Problem(0, '')
  }
}

async function read(answer) {
  let body
  try {
    body = await answer.json()
  } catch (error) {
    if (error.name === 'AbortError') throw error
    if (error.name === 'TimeoutError' || error instanceof TypeError) throw new Problem(0, '') // it broke off
    throw new Problem(answer.status, `${answer.status} ${answer.statusText}`)
  }
  if (!answer.ok) throw new Problem(answer.status, body.detail ?? answer.statusText, body)
  return body
}
