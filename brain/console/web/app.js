// The frame of all pages: which page is shown, who is there, whether the brain is heard; it draws what has changed.

import { render } from './vendor/lit-html/lit-html.js'
import { frame } from './frame.js'
import { watch } from './live.js'
import { forget, get, posted, Problem } from './net.js'
import { onLinks, route } from './router.js'
import * as words from './words.js'

const REFRESH_MS = 15_000 // what no note tells: ages, and what is due soon
const SOON_MS = 400 // notes that come together are one reading; a page that is costly to read says so (`soonMs`)
const THEME = 'gpuward-theme'

/** All that is shown comes from here; whoever changes it calls `draw`. */
export const state = {
  me: null, // /api/v1/me; null: nobody may read here without logging in
  status: null,
  connected: true,
  since: null, // when the brain was last heard, ms
  at: route(new URL(location.href)), // {page, args, query}
  page: null, // the module of the page
  data: null,
  problem: null,
  loading: true,
  said: null, // {text, bad}: what came of the last thing that somebody did
  dialog: null,
  menu: false,
  own: {}, // what a page keeps for itself while it is open
}

const root = document.getElementById('app')
let drawing = false
let ready = false // are the words there?
let reading = null
let again = 0
let stopWatching = null

/** Draws in the next frame. */
export function draw() {
  if (drawing || !ready) return
  drawing = true
  requestAnimationFrame(() => {
    drawing = false
    render(frame(state), root)
    document.title = `${state.page?.title?.(state) ?? ''} · gpuward`.replace(/^ · /, '')
    state.page?.drawn?.(state)
  })
}

/** Goes to a page. */
export async function go(url, { replace = false } = {}) {
  const to = new URL(url, location.href)
  history[replace ? 'replaceState' : 'pushState']({}, '', to)
  await show()
  if (!to.hash) scrollTo(0, 0)
  document.getElementById('main')?.focus({ preventScroll: true })
}

/** Changes values of the address' query without a step in the browser's history; what is shown is read anew. */
export async function ask(values) {
  const to = new URL(location.href)
  for (const [name, value] of Object.entries(values)) {
    if (value === '' || value === null || value === undefined) to.searchParams.delete(name)
    else to.searchParams.set(name, value)
  }
  history.replaceState({}, '', to)
  state.at = route(to)
  await load()
}

/** Reads what the page shows. An answer that comes after the next question is thrown away. */
export async function load({ quiet = false } = {}) {
  const { page } = state
  if (!page?.load) {
    state.loading = false
    draw()
    return
  }
  reading?.abort()
  const mine = (reading = new AbortController())
  state.loading = !quiet
  if (!quiet) draw()
  try {
    const data = await page.load(state.at, { signal: mine.signal, state })
    if (mine.signal.aborted) return
    Object.assign(state, { data, problem: null, since: Date.now(), connected: true })
  } catch (error) {
    if (mine.signal.aborted || error.name === 'AbortError') return
    await failed(error)
  } finally {
    if (!mine.signal.aborted) state.loading = false
    draw()
  }
}

/** Tells people what came of what they did. */
export function say(text, { bad = false } = {}) {
  state.said = { text, bad }
  draw()
}

/** Knows anew who is there: after a login or its end. */
export async function identify() {
  forget()
  try {
    const [me, status] = await Promise.all([get('me'), get('status')])
    Object.assign(state, { me, status, since: Date.now() })
  } catch (error) {
    state.me = null
    await failed(error)
  }
  stopWatching?.()
  stopWatching = state.me ? watch({ note, lost: () => load({ quiet: true }), state: heard }) : null
}

/** Ends the login. */
export async function logOut() {
  await posted('/logout', {})
  await identify()
  await go(state.me ? '/' : '/sign-in')
}

/** Changes the theme: `light`, `dark` or empty for the system's. */
export function theme(chosen) {
  words.remember(THEME, chosen)
  dress()
  draw()
}

function dress() {
  const chosen = words.remembered(THEME)
  if (chosen === 'light' || chosen === 'dark') document.documentElement.dataset.theme = chosen
  else delete document.documentElement.dataset.theme
}

async function show() {
  state.page?.left?.(state)
  reading?.abort()
  const wanted = (state.at = route(new URL(location.href)) ?? { page: 'now', args: {}, query: {} })
  Object.assign(state, { data: null, problem: null, said: null, dialog: null, menu: false, own: {} })
  const module = await import(`./pages/${wanted.page}.js`)
  if (state.at !== wanted) return
  state.page = module
  await load()
}

async function failed(error) {
  if (!(error instanceof Problem)) throw error
  if (error.status === 0) {
    state.connected = false
    if (!state.data) state.problem = error
  } else if (error.status === 401 && state.at?.page !== 'sign_in') {
    words.remember('gpuward-wanted', location.pathname + location.search)
    await go('/sign-in', { replace: true })
  } else {
    state.problem = error
  }
}

function note(one) {
  state.since = Date.now()
  state.page?.noted?.(one, state)
  if (!state.page?.concerns?.(one, state)) return
  if (again) return
  const soon = state.page.soonMs ?? SOON_MS
  const waited = Date.now() - (state.own.readAt ?? 0)
  again = setTimeout(() => {
    again = 0
    state.own.readAt = Date.now()
    load({ quiet: true })
  }, waited > soon ? 0 : soon - waited)
}

function heard(connected) {
  const back = connected && !state.connected
  state.connected = connected
  if (back) refresh()
  draw()
}

async function refresh() {
  if (!state.me || document.hidden) return
  try {
    state.status = await get('status')
    Object.assign(state, { since: Date.now(), connected: true })
  } catch (error) {
    await failed(error)
  }
  await load({ quiet: true })
}

async function begin() {
  dress()
  const known = identify() // while the words come
  await words.begin()
  onLinks((url) => go(url))
  addEventListener('popstate', show)
  addEventListener('offline', () => heard(false))
  addEventListener('online', refresh)
  document.addEventListener('visibilitychange', () => { if (!document.hidden) refresh() })
  addEventListener('keydown', (event) => {
    if (event.key === 'Escape' && (state.menu || state.said)) {
      Object.assign(state, { menu: false, said: null })
      draw()
    }
  })
  setInterval(refresh, REFRESH_MS)
  await known
  root.replaceChildren()
  ready = true
  await show()
}

begin()
