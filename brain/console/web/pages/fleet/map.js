// The map under the hand: pan and zoom by mouse, finger and keyboard; which node is meant.

import { order, paint, palette } from './paint.js'

const PAD = 14 // px around it
const BUTTONS_PX = 48
const NEAREST_PX = 160 // for a node, at most
const STEP = 1.35
const TAP_PX = 8 // a finger that moves less has tapped
const WIDE = 1.12 // for a click beside a small shape
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }

/**
 * A canvas as a map. `on.focus(node, how)`: a node is meant, -1: none (`how`: `hover`, `tap`, `key`); `on.open(node)`; `on.size()`: it
 * has another size, places must be found anew.
 */
export class FleetMap {
  constructor(canvas, on) {
    this.canvas = canvas
    this.on = on
    this.scene = null
    this.at = { scale: 1, x: 0, y: 0 }
    this.marked = -1
    this.touched = false // has somebody moved it?
    this.drawn = false
    this.kept = {}
    this.pointers = new Map()
    this.moved = 0
    this.due = 0
    this.ended = new AbortController()
    const { signal } = this.ended
    canvas.addEventListener('pointerdown', (event) => this.#down(event), { signal })
    canvas.addEventListener('pointermove', (event) => this.#move(event), { signal })
    canvas.addEventListener('pointerup', (event) => this.#up(event), { signal })
    canvas.addEventListener('pointercancel', (event) => this.pointers.delete(event.pointerId), { signal })
    canvas.addEventListener('pointerleave', (event) => { if (event.pointerType === 'mouse' && !this.pointers.size) this.mark(-1, 'hover') }, { signal })
    canvas.addEventListener('wheel', (event) => this.#wheel(event), { signal, passive: false })
    canvas.addEventListener('keydown', (event) => this.#key(event), { signal })
    canvas.addEventListener('focus', () => { if (canvas.matches(':focus-visible') && this.marked < 0) this.mark(this.first(), 'key') }, { signal })
    this.watcher = new ResizeObserver(() => this.#sized())
    this.watcher.observe(canvas)
  }

  /** Size in px. */
  get size() {
    return { width: Math.max(1, this.canvas.clientWidth), height: Math.max(1, this.canvas.clientHeight) }
  }

  /** What of it is free: beside the map stand its buttons where there is room. */
  get room() {
    const { width, height } = this.size
    return { width: Math.max(1, width - (width > 700 ? BUTTONS_PX : 0) - 2 * PAD), height: Math.max(1, height - 2 * PAD) }
  }

  /** Shows something: see paint.js. Where one has looked stays, unless nobody has moved the map, or the places are others. */
  show({ fleet, places, shown, nowhere }) {
    const others = this.scene && (this.scene.places.width !== places.width || this.scene.fleet.n !== fleet.n)
    if (!this.scene || this.scene.fleet !== fleet || this.scene.shown !== shown) this.order = order(fleet, shown)
    if (this.scene && this.scene.fleet.names !== fleet.names && this.scene.fleet.names[this.marked] !== fleet.names[this.marked]) this.marked = -1
    this.scene = { fleet, places, shown, nowhere, order: this.order, colours: palette(this.canvas) }
    if (!this.touched || others) this.fit()
    this.draw()
  }

  /** All of it, or all of some nodes. */
  fit(nodes = null) {
    const { places } = this.scene
    let box = { x: 0, y: 0, w: places.width, h: places.height }
    if (nodes?.length) {
      const xs = nodes.map((node) => places.x[node])
      const ys = nodes.map((node) => places.y[node])
      const [x, y] = [xs.reduce((a, b) => Math.min(a, b)), ys.reduce((a, b) => Math.min(a, b))]
      box = { x, y, w: xs.reduce((a, b) => Math.max(a, b)) - x + 1, h: ys.reduce((a, b) => Math.max(a, b)) - y + 1 }
    }
    const { width: wide, height: high } = this.room
    this.least = Math.min(wide / places.width, high / places.height, NEAREST_PX)
    const scale = Math.min(wide / box.w, high / box.h, nodes ? NEAREST_PX * 0.75 : NEAREST_PX)
    this.at = { scale, x: PAD + (wide - box.w * scale) / 2 - box.x * scale, y: PAD + (high - box.h * scale) / 2 - box.y * scale }
    this.touched = Boolean(nodes?.length)
    this.draw()
  }

  /** Nearer (above 1) or farther, about a point in px; without one about the node in focus, else the middle. */
  zoom(factor, point = null) {
    const { width, height } = this.size
    const about = point ?? (this.marked >= 0 ? this.#middle(this.marked) : { x: width / 2, y: height / 2 })
    const scale = Math.min(NEAREST_PX, Math.max(this.least * 0.8, this.at.scale * factor))
    const by = scale / this.at.scale
    this.at = { scale, x: about.x - (about.x - this.at.x) * by, y: about.y - (about.y - this.at.y) * by }
    this.touched = true
    this.draw()
  }

  /** Moves what is shown, in px; some of it stays in sight. */
  pan(dx, dy) {
    const { width, height } = this.size
    const { places } = this.scene
    const keep = 60
    this.at.x = Math.min(width - keep, Math.max(keep - places.width * this.at.scale, this.at.x + dx))
    this.at.y = Math.min(height - keep, Math.max(keep - places.height * this.at.scale, this.at.y + dy))
    this.touched = true
    this.draw()
  }

  /** Means a node. */
  mark(node, how) {
    if (node === this.marked && how === 'hover') return
    this.marked = node
    if (how === 'key' && node >= 0) this.#intoSight(node)
    this.on.focus(node, how)
    this.draw()
  }

  /** The node that is meant first: the most urgent of those that are shown. */
  first() {
    const { order: drawn, shown } = this.scene
    const last = drawn.at(-1)
    return last !== undefined && shown[last] ? last : -1
  }

  /** Draws in the next frame. */
  draw() {
    if (this.due || !this.scene) return
    this.due = requestAnimationFrame(() => {
      this.due = 0
      paint(this.canvas, this.scene, this.at, this.marked, this.#ratio(), this.kept)
      if (!this.drawn) performance.mark('fleet-drawn')
      this.drawn = true
    })
  }

  /** Ends it. */
  end() {
    this.ended.abort()
    this.watcher.disconnect()
    cancelAnimationFrame(this.due)
    this.scene = null
  }

  #ratio() {
    return Math.min(2, devicePixelRatio || 1)
  }

  #sized() {
    const { width, height } = this.size
    this.canvas.width = Math.round(width * this.#ratio())
    this.canvas.height = Math.round(height * this.#ratio())
    if (!this.scene) return
    this.on.size()
    this.draw()
  }

  #middle(node) {
    const { places } = this.scene
    return { x: this.at.x + (places.x[node] + 0.5) * this.at.scale, y: this.at.y + (places.y[node] + 0.5) * this.at.scale }
  }

  #intoSight(node) {
    const { x, y } = this.#middle(node)
    const { width, height } = this.size
    const edge = Math.min(this.at.scale, width / 3, height / 3) + 8
    const dx = x < edge ? edge - x : x > width - edge ? width - edge - x : 0
    const dy = y < edge ? edge - y : y > height - edge ? height - edge - y : 0
    if (dx || dy) this.pan(dx, dy)
  }

  /** The node at a point; where they are small, the one close by, the most urgent first. -1: none. */
  #under(point) {
    const { places, shown, order: drawn, fleet } = this.scene
    const x = (point.x - this.at.x) / this.at.scale
    const y = (point.y - this.at.y) / this.at.scale
    const reach = Math.max(0.5, (5 / this.at.scale) * WIDE)
    for (let n = drawn.length - 1; n >= 0; n -= 1) {
      const node = drawn[n]
      if (!shown[node]) break
      const near = fleet.words[fleet.state[node]] === 'well' ? 0.5 : reach
      if (Math.abs(places.x[node] + 0.5 - x) <= near && Math.abs(places.y[node] + 0.5 - y) <= near) return node
    }
    return -1
  }

  #point(event) {
    const box = this.canvas.getBoundingClientRect()
    return { x: event.clientX - box.left, y: event.clientY - box.top }
  }

  #down(event) {
    if (!this.scene || (event.pointerType === 'mouse' && event.button !== 0)) return
    this.canvas.setPointerCapture(event.pointerId)
    if (!this.pointers.size) this.moved = 0
    else this.moved = Infinity
    this.pointers.set(event.pointerId, this.#point(event))
  }

  #move(event) {
    if (!this.scene) return
    const point = this.#point(event)
    const before = this.pointers.get(event.pointerId)
    if (!before) {
      if (event.pointerType === 'mouse') this.mark(this.#under(point), 'hover')
      return
    }
    const others = [...this.pointers].filter(([id]) => id !== event.pointerId).map(([, each]) => each)
    this.pointers.set(event.pointerId, point)
    const [dx, dy] = [point.x - before.x, point.y - before.y]
    this.moved += Math.hypot(dx, dy)
    if (others.length === 1) {
      const [other] = others
      const apart = (one) => Math.max(1, Math.hypot(one.x - other.x, one.y - other.y))
      this.zoom(apart(point) / apart(before), { x: (point.x + other.x) / 2, y: (point.y + other.y) / 2 })
      this.pan(dx / 2, dy / 2)
    } else if (!others.length && this.moved > TAP_PX) this.pan(dx, dy)
  }

  #up(event) {
    if (!this.pointers.delete(event.pointerId) || !this.scene || this.moved > TAP_PX) return
    const node = this.#under(this.#point(event))
    if (event.pointerType === 'mouse' && node >= 0) this.on.open(node)
    else this.mark(node, 'tap')
  }

  #wheel(event) {
    if (!this.scene) return
    event.preventDefault()
    const lines = event.deltaMode === 1 ? 30 : 1
    this.zoom(Math.exp(-event.deltaY * lines * (event.ctrlKey ? 0.01 : 0.0018)), this.#point(event))
  }

  #key(event) {
    if (!this.scene || event.ctrlKey || event.metaKey || event.altKey) return
    const arrow = ARROWS[event.key]
    if (arrow && event.shiftKey) this.pan(-arrow[0] * 80, -arrow[1] * 80)
    else if (arrow) this.mark(this.marked < 0 ? this.first() : this.#beside(arrow), 'key')
    else if (event.key === '+' || event.key === '=') this.zoom(STEP)
    else if (event.key === '-') this.zoom(1 / STEP)
    else if (event.key === '0') this.fit()
    else if (event.key === 'n' || event.key === 'p') this.mark(this.#next(event.key === 'n' ? -1 : 1), 'key')
    else if (event.key === 'Home') this.mark(this.first(), 'key')
    else if (event.key === 'Enter' && this.marked >= 0) this.on.open(this.marked)
    else return
    event.preventDefault()
  }

  /** The next node in the order of urgency (-1), or the one before. */
  #next(step) {
    const { order: drawn, shown } = this.scene
    const here = drawn.lastIndexOf(this.marked)
    if (here < 0) return this.first()
    const node = drawn[here + step]
    return node !== undefined && shown[node] ? node : this.marked
  }

  #beside([right, down]) {
    const { places, shown, fleet } = this.scene
    let best = this.marked
    let least = Infinity
    for (let node = 0; node < fleet.n; node += 1) {
      if (!shown[node] || node === this.marked) continue
      const dx = places.x[node] - places.x[this.marked]
      const dy = places.y[node] - places.y[this.marked]
      const along = dx * right + dy * down
      const aside = Math.abs(dx * down) + Math.abs(dy * right)
      if (along < 0.5 || along + 3 * aside >= least) continue
      least = along + 3 * aside
      best = node
    }
    return best
  }
}
