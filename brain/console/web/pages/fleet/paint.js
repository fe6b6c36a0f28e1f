// Draws the map. Far away a node is one shape; near, a card with its name and each of its GPUs.

import { SHAPES } from './shapes.js'

const GAP = 0.14 // of a unit, between two nodes
const LEAST_PX = 7 // whatever needs eyes is never smaller ...
const LEAST_UNITS = 1.8 // ... unless it would hide its neighbours
const CALM = ['well', 'unknown']
const CARD_PX = 46 // from this size on, a node shows its GPUs
const NAMED_PX = 84
const DIM = 0.16
const FONT = 'system-ui, "Noto Sans", "Noto Sans CJK SC", "PingFang SC", sans-serif'
const paths = new Map()

/** The colours of the theme in force. */
export function palette(element) {
  const style = getComputedStyle(element)
  const names = ['--card', '--ink', '--soft', '--line', '--accent', '--bad', '--warn', '--well', '--focus', '--code']
  return Object.fromEntries(names.map((name) => [name, style.getPropertyValue(name).trim()]))
}

/** Order in which nodes are drawn: what is dimmed, then what is well, and what needs eyes at last, on top. */
export function order(fleet, shown) {
  const buckets = Array.from({ length: fleet.words.length + 1 }, () => [])
  for (let node = 0; node < fleet.n; node += 1) buckets[shown[node] ? fleet.words.length - fleet.state[node] : 0].push(node)
  return Int32Array.from(buckets.flat())
}

/**
 * Draws. `scene`: {fleet, places (of layout.js), shown, order, colours, nowhere}; `at`: {scale (px for a unit), x, y (px)}; `marked`: the
 * node in focus, -1: none; `ratio`: device px for one of ours. `kept`: what this canvas may remember, an object.
 */
export function paint(canvas, scene, at, marked, ratio, kept) {
  const ctx = canvas.getContext('2d', { alpha: false })
  const { colours } = scene
  ctx.setTransform(1, 0, 0, 1, 0, 0)
  ctx.globalAlpha = 1
  ctx.fillStyle = colours['--card']
  ctx.fillRect(0, 0, canvas.width, canvas.height)
  const px = at.scale * (1 - GAP)
  if (px >= CARD_PX) cards(ctx, scene, at, ratio, px)
  else shapes(ctx, scene, at, ratio, px, kept)
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0)
  ctx.globalAlpha = 1
  labels(ctx, scene, at, canvas.width / ratio, canvas.height / ratio)
  if (marked >= 0) frame(ctx, scene, at, marked, px)
}

function shapes(ctx, scene, at, ratio, px, kept) {
  const { fleet, places, shown, colours } = scene
  const size = Math.max(1, Math.round(px * ratio))
  const large = Math.max(size, Math.round(Math.min(LEAST_PX, LEAST_UNITS * at.scale) * ratio))
  const drawn = sprites(fleet.words, colours, size, large, kept)
  const { width, height } = ctx.canvas
  const step = at.scale * ratio
  const left = at.x * ratio
  const top = at.y * ratio
  const well = colours['--well']
  let dim = true
  ctx.globalAlpha = DIM
  ctx.fillStyle = well
  for (const node of scene.order) {
    if (dim && shown[node]) {
      dim = false
      ctx.globalAlpha = 1
    }
    const x = Math.round(left + places.x[node] * step)
    const y = Math.round(top + places.y[node] * step)
    if (x > width || y > height || x + step < 0 || y + step < 0) continue
    const word = fleet.words[fleet.state[node]]
    if (word === 'well' && !fleet.held[node]) ctx.fillRect(x, y, size, size)
    else {
      const sprite = drawn[word]
      const off = dim ? 0 : (sprite.width - size) >> 1
      if (dim) ctx.drawImage(sprite, x, y, size, size)
      else ctx.drawImage(sprite, x - off, y - off)
      if (fleet.held[node] && !dim) held(ctx, x, y, size, colours, ratio)
      ctx.fillStyle = well
    }
  }
}

/** A picture of each state's shape at this size. */
function sprites(words, colours, size, large, kept) {
  const key = `${size} ${large} ${Object.values(colours).join()}`
  if (kept.key === key) return kept.sprites
  kept.key = key
  kept.sprites = Object.fromEntries(words.map((word) => {
    const px = CALM.includes(word) ? size : large
    const one = document.createElement('canvas')
    one.width = one.height = px
    shape(one.getContext('2d'), word, 0, 0, px, colours)
    return [word, one]
  }))
  return kept.sprites
}

function shape(ctx, word, x, y, px, colours) {
  const one = SHAPES[word] ?? SHAPES.unknown
  ctx.save()
  ctx.translate(x, y)
  ctx.scale(px, px)
  ctx.fillStyle = colours[one.colour]
  ctx.fill(pathOf(one.path), 'evenodd')
  if (one.over && px >= 6) {
    ctx.fillStyle = colours['--card']
    ctx.fill(pathOf(one.over))
  }
  ctx.restore()
}

function pathOf(text) {
  if (!paths.has(text)) paths.set(text, new Path2D(text))
  return paths.get(text)
}

/** An operator's hold: a frame, and two bars where there is room. */
function held(ctx, x, y, size, colours, ratio) {
  ctx.strokeStyle = colours['--ink']
  ctx.lineWidth = Math.max(1, ratio)
  ctx.strokeRect(x - 0.5, y - 0.5, size + 1, size + 1)
  if (size < 14 * ratio) return
  ctx.fillStyle = colours['--ink']
  for (const part of [0.68, 0.82]) ctx.fillRect(x + size * part, y + size * 0.08, size * 0.08, size * 0.3)
}

function cards(ctx, scene, at, ratio, px) {
  const { fleet, places, shown, colours } = scene
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0)
  const width = ctx.canvas.width / ratio
  const height = ctx.canvas.height / ratio
  ctx.textBaseline = 'middle'
  for (const node of scene.order) {
    const x = at.x + places.x[node] * at.scale
    const y = at.y + places.y[node] * at.scale
    if (x > width || y > height || x + px < 0 || y + px < 0) continue
    ctx.globalAlpha = shown[node] ? 1 : DIM
    card(ctx, fleet, node, x, y, px, colours)
  }
}

function card(ctx, fleet, node, x, y, px, colours) {
  const word = fleet.words[fleet.state[node]]
  ctx.fillStyle = colours['--code']
  ctx.fillRect(x, y, px, px)
  ctx.strokeStyle = word === 'well' ? colours['--line'] : colours[SHAPES[word].colour]
  ctx.lineWidth = word === 'well' ? 1 : 2
  ctx.strokeRect(x + 1, y + 1, px - 2, px - 2)
  const pad = px * 0.07
  const head = px * 0.22
  shape(ctx, word, x + pad, y + pad, head, colours)
  const font = Math.min(15, px * 0.145)
  if (px >= NAMED_PX) {
    ctx.font = `600 ${font}px ${FONT}`
    ctx.fillStyle = colours['--ink']
    ctx.fillText(fitted(ctx, fleet.names[node], px - 2 * pad - head * 1.3 - (fleet.held[node] ? head * 0.7 : 0)), x + pad + head * 1.3, y + pad + head / 2)
  }
  if (fleet.held[node]) {
    ctx.fillStyle = colours['--ink']
    for (const part of [0.84, 0.9]) ctx.fillRect(x + px * part, y + pad, px * 0.03, head)
  }
  const cause = fleet.incident[node] >= 0 && px >= NAMED_PX ? fleet.incidents.cause[fleet.incident[node]] : ''
  if (cause) {
    ctx.font = `${font * 0.85}px ${FONT}`
    ctx.fillStyle = colours['--soft']
    ctx.fillText(fitted(ctx, cause, px - 2 * pad), x + pad, y + px - pad - font * 0.4)
  }
  gpus(ctx, fleet, node, word, { x: x + pad, y: y + pad * 1.6 + head, w: px - 2 * pad, h: px - 2.6 * pad - head - (px >= NAMED_PX ? font : 0) }, colours)
}

/** The GPUs: first those that an incident is about, with the bus of their address, then the others: which is which they do not say. */
function gpus(ctx, fleet, node, word, box, colours) {
  const hit = fleet.cards.get(node) ?? []
  const count = Math.max(fleet.gpus[node], hit.length)
  if (count <= 0) return
  const columns = count <= 3 ? count : Math.ceil(count / Math.max(2, Math.round(Math.sqrt(count / 3))))
  const step = Math.min(box.w / columns, box.h / Math.ceil(count / columns))
  const size = step * 0.8
  const others = ['unreachable', 'drained', 'unknown'].includes(word) ? word : 'well'
  for (let n = 0; n < count; n += 1) {
    const x = box.x + (n % columns) * step
    const y = box.y + Math.floor(n / columns) * step
    shape(ctx, hit[n] ? fleet.words[hit[n].state] : others, x, y, size, colours)
    if (!hit[n] || size < 24) continue
    const bus = hit[n].card.split(':').at(-2) ?? hit[n].card
    ctx.font = `600 ${size * 0.38}px ${FONT}`
    ctx.fillStyle = colours['--card']
    ctx.fillRect(x + size * 0.5, y + size * 0.62, size * 0.5, size * 0.42)
    ctx.fillStyle = colours['--ink']
    ctx.fillText(bus, x + size * 0.53, y + size * 0.83)
  }
}

function labels(ctx, scene, at, width, height) {
  const { places, colours } = scene
  const room = places.label * at.scale
  if (room < 10) return
  const font = Math.max(9, Math.min(14, room * 0.72))
  ctx.font = `${font}px ${FONT}`
  ctx.textBaseline = 'middle'
  ctx.fillStyle = colours['--soft']
  for (const { name, x, y, w, count } of places.groups) {
    const left = at.x + x * at.scale
    const top = at.y + y * at.scale - Math.min(room / 2, font)
    const wide = w * at.scale
    if (left > width || top > height + room || left + wide < 0 || top < -room || wide < 14) continue
    ctx.fillText(fitted(ctx, `${name || scene.nowhere} · ${count}`, wide + at.scale * 0.5), left, top)
  }
}

function frame(ctx, scene, at, node, px) {
  const x = at.x + scene.places.x[node] * at.scale
  const y = at.y + scene.places.y[node] * at.scale
  const size = Math.max(px, LEAST_PX)
  const off = (size - px) / 2
  ctx.lineWidth = 2.5
  ctx.strokeStyle = scene.colours['--ink']
  ctx.strokeRect(x - off - 3, y - off - 3, size + 6, size + 6)
  ctx.lineWidth = 1
  ctx.strokeStyle = scene.colours['--card']
  ctx.strokeRect(x - off - 1, y - off - 1, size + 2, size + 2)
}

function fitted(ctx, text, width) {
  if (ctx.measureText(text).width <= width) return text
  let keep = Math.max(0, Math.floor((text.length * width) / ctx.measureText(text).width) - 1)
  while (keep > 0 && ctx.measureText(`${text.slice(0, keep)}…`).width > width) keep -= 1
  return keep > 0 ? `${text.slice(0, keep)}…` : ''
}
