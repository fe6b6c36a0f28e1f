// The notes as they are written. The browser comes again by itself with the id of the last one; where it gives up, we do.

const AGAIN_MS = [1000, 2000, 4000, 8000]

/**
 * Watches the notes. `on.note(note)`; `on.lost()`: what came meanwhile cannot be told, read anew; `on.state(connected)`.
 * Returns what ends it.
 */
export function watch(on) {
  let source = null
  let last = ''
  let failed = 0
  let timer = 0
  let ended = false

  function open() {
    source = new EventSource(`/api/v1/watch${last ? `?after=${encodeURIComponent(last)}` : ''}`)
    source.onopen = () => {
      failed = 0
      on.state(true)
    }
    source.onerror = () => {
      on.state(false)
      if (source.readyState !== EventSource.CLOSED) return // it comes again by itself
      timer = setTimeout(open, AGAIN_MS[Math.min(failed, AGAIN_MS.length - 1)])
      failed += 1
    }
    source.addEventListener('begin', (event) => { last = event.lastEventId })
    source.addEventListener('lost', () => on.lost())
    source.addEventListener('note', (event) => {
      last = event.lastEventId || last
      on.note(JSON.parse(event.data))
    })
  }

  function end() {
    if (ended) return
    ended = true
    clearTimeout(timer)
    source.close()
  }

  open()
  return end
}
