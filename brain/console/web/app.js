// The frame of all pages: which page is shown, who is there, whether the brain is heard; it draws what has changed.

import { render } from './vendor/lit-html/lit-html.js'
import { frame } from './frame.js'
import { watch } from './live.js'
import { forget, get, posted, Problem } from './net.js'
import { guard } from './parts/dialog.js'
import { inert, made } from './parts/inert.js'
import { want, wanted } from './parts/wanted.js'
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
  behind: false, // the brain has no time for this page now
  unknown: false, // it has not said who is there
  since: null, // when what is shown was read, ms
  at: route(new URL(location.href)), // {page, args, query}
  page: null, // the module of the page
  data: null,
  problem: null,
  loading: true,
  said: null, // {text, bad}: what came of the last thing that somebody did
  dialog: null,
  menu: false,
  inSight: null, // the place whose link has been brought into sight
  own: {}, // what a page keeps for itself while it is open
}

const root = document.getElementById('app')
let drawing = false
let ready = false // are the words there?
let reading = null // of the page's data, while it is under way
let again = false // read once more after it
let timer = 0
let readAt = 0
let tookMs = 0
let stopWatching = null

/** Draws in the next frame. */
export function draw() {
  if (drawing || !ready) return
  drawing = true
  requestAnimationFrame(() => {
    drawing = false
    render(made(frame(state)), root)
    document.title = inert(`${state.page?.title?.(state) ?? ''} · gpuward`.replace(/^ · /, ''))
    state.page?.drawn?.(state)
    if (state.inSight !== state.at) showWhere()
  })
}

/** On a phone not all pages stand in the row: the one that is open does. */
function showWhere() {
  state.inSight = state.at
  const row = document.querySelector('.ways')
  const here = row?.querySelector('[aria-current]')
  if (!here || row.scrollWidth <= row.clientWidth) return
  row.scrollLeft = here.offsetLeft - row.offsetLeft - (row.clientWidth - here.offsetWidth) / 2
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

/**
 * Reads what the page shows. Quietly: what stands there stays until the answer is here, and no reading that is under way is cut
 * off, or an answer that takes longer than the next note would never be shown.
 */
export async function load({ quiet = false } = {}) {
  const { page } = state
  if (!page?.load) {
    state.loading = false
    draw()
    return
  }
  if (quiet && reading) {
    again = true
    return
  }
  reading?.abort()
  const mine = (reading = new AbortController())
  again = false
  state.loading = !quiet
  if (!quiet) draw()
  const begun = performance.now()
  try {
    const data = await page.load(state.at, { signal: mine.signal, state })
    if (mine.signal.aborted) return
    Object.assign(state, { data, problem: null, since: Date.now(), connected: true, behind: false })
  } catch (error) {
    if (mine.signal.aborted) return
    await failed(error, quiet)
  } finally {
    if (reading === mine) {
      reading = null
      readAt = performance.now()
      tookMs = readAt - begun
      state.loading = false
      if (again) soon()
      draw()
    }
  }
}

/** Reads it again, but notes that come together are one reading, and a brain that takes long to answer is asked seldom. */
function soon() {
  if (timer) return
  const pause = Math.max(state.page?.soonMs ?? SOON_MS, 4 * tookMs)
  timer = setTimeout(() => {
    timer = 0
    load({ quiet: true })
  }, Math.max(0, readAt + pause - performance.now()))
}

/** Tells people what came of what they did. */
export function say(text, { bad = false } = {}) {
  state.said = { text, bad }
  draw()
}

/** Knows anew who is there: after a login or its end, or when the brain did not say. */
export async function identify() {
  forget()
  state.unknown = false
  try {
    const [me, status] = await Promise.all([get('me'), get('status')])
    Object.assign(state, { me, status, since: Date.now(), connected: true })
  } catch (error) {
    state.me = null
    state.unknown = error.status !== 401
    await failed(error)
  }
  listen()
}

/** Ends the login. */
export async function logOut() {
  try {
    await posted('/logout', {})
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    say(error.message || words.t('no-answer'), { bad: true })
    return
  }
  await identify()
  wanted()
  await go(state.me ? '/' : '/sign-in')
}

/** Knows anew what the brain says of itself. */
export async function ownState() {
  state.status = await get('status')
  draw()
}

/** Changes the language: what the brain says is asked for anew in it. */
export async function speak(code) {
  await words.choose(code, { keep: true })
  draw()
  listen()
  await load({ quiet: true })
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

/** Notes come while somebody looks: a browser keeps six connections to one host for all of its tabs. */
function listen() {
  stopWatching?.()
  const on = { note, lost: () => load({ quiet: true }), state: heard }
  stopWatching = state.me && !document.hidden ? watch(on) : null
}

async function show() {
  state.page?.left?.(state)
  reading?.abort()
  reading = null
  clearTimeout(timer)
  timer = 0
  const at = (state.at = route(new URL(location.href)) ?? { page: 'missing', args: {}, query: {} })
  Object.assign(state, { page: null, data: null, problem: null, said: null, dialog: null, menu: false, own: {} })
  let module
  try {
    module = await import(`./pages/${at.page}.js`)
  } catch {
    if (state.at !== at) return
    Object.assign(state, { problem: new Problem(0, ''), connected: false }) // `refresh` tries it again
    draw()
    return
  }
  if (state.at !== at) return
  state.page = module
  await load()
}

async function failed(error, quiet = false) {
  if (!(error instanceof Problem)) throw error
  if (error.status === 0) {
    state.connected = false
    if (!state.data) state.problem = error
  } else if (error.status === 401) {
    state.me = null
    listen()
    if (state.at?.page === 'sign_in') return
    want(location.pathname + location.search)
    await go('/sign-in', { replace: true })
  } else if (quiet && state.data) {
    state.behind = true // asked too often, or others read: what stands there stays
  } else {
    state.problem = error
  }
}

function note(one) {
  if (one.kind.startsWith('operator.')) ownState().catch(() => {}) // who holds what; the next look has it otherwise
  state.page?.noted?.(one, state)
  if (state.page?.concerns?.(one, state)) soon()
}

function heard(connected) {
  const back = connected && !state.connected
  state.connected = connected
  if (back) refresh()
  draw()
}

async function refresh() {
  if (document.hidden) return
  if (state.unknown) await identify()
  if (!state.page) return show()
  if (!state.me) return
  try {
    const [me, status] = await Promise.all([get('me'), get('status')])
    const ended = state.me.how && !me.how
    Object.assign(state, { me, status })
    if (ended) say(words.t('login-ended'), { bad: true })
  } catch (error) {
    await failed(error, true)
  }
  await load({ quiet: true })
}

async function begin() {
  dress()
  const known = identify() // while the words come
  await words.begin()
  onLinks((url) => go(url))
  guard(state)
  addEventListener('popstate', show)
  addEventListener('offline', () => heard(false))
  addEventListener('online', refresh)
  document.addEventListener('visibilitychange', () => {
    listen()
    refresh()
  })
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
  const page = state.me?.how && location.pathname === '/' ? wanted() : ''
  await (page ? go(page, { replace: true }) : show())
}

begin()
