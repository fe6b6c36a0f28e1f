// The notes as they are written. The browser comes again by itself with the id of the last one; where it gives up, we do.

import { query } from './net.js'
import { language } from './words.js'

const AGAIN_MS = [1000, 2000, 4000, 8000]
const SILENT_MS = 40_000 // the brain says something each 15 s; a network that swallows everything says nothing

/**
 * Watches the notes. `on.note(note)`; `on.lost()`: what came meanwhile cannot be told, read anew; `on.state(connected)`.
 * Returns what ends it.
 */
export function watch(on) {
  let source = null
  let last = ''
  let failed = 0
  let timer = 0
  let heardAt = performance.now()

  function open() {
    heardAt = performance.now()
    source = new EventSource(`/api/v1/watch${query({ after: last, language: language() })}`)
    source.onopen = () => {
      failed = 0
      heardAt = performance.now()
      on.state(true)
    }
    source.onerror = () => {
      on.state(false)
      if (source.readyState === EventSource.CLOSED) comeAgain() // else the browser does
    }
    listen('begin', (event) => { last = event.lastEventId })
    listen('ping', () => {})
    listen('lost', () => on.lost())
    listen('note', (event) => {
      last = event.lastEventId || last
      on.note(JSON.parse(event.data))
    })
  }

  function listen(kind, handle) {
    source.addEventListener(kind, (event) => {
      heardAt = performance.now()
      handle(event)
    })
  }

  function comeAgain() {
    clearTimeout(timer)
    source.close()
    timer = setTimeout(open, AGAIN_MS[Math.min(failed, AGAIN_MS.length - 1)])
    failed += 1
  }

  const guard = setInterval(() => {
    if (source.readyState === EventSource.CLOSED || performance.now() - heardAt < SILENT_MS) return
    on.state(false)
    comeAgain()
  }, 5000)

  open()
  return () => {
    clearInterval(guard)
    clearTimeout(timer)
    source.close()
  }
}
