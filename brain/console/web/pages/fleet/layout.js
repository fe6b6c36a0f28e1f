// Where each node stands on the map: one unit for a node, groups as blocks under their names, blocks in rows like lines of a text.

const BETWEEN = 0.5 // units between two blocks
const LABEL = 0.7 // units for the name of a group
const LABEL_PX = 15 // where few groups leave room, their names can be read from afar
const FEW = 60
const WIDTHS = [0.75, 0.85, 0.95, 1, 1.08, 1.18, 1.3]

/**
 * Returns {x, y, groups, width, height}: for each node its corner in units; groups are {name, x, y, w, h, count}, `y` that of its
 * nodes, its name stands `label` units above. `size`: {width, height} of the canvas in px, so that all fits well.
 */
export function layout(fleet, by, size) {
  const members = membersOf(fleet, by)
  const blocks = members.map(({ name, nodes }) => ({ name, nodes, ...shape(nodes.length) }))
  const aspect = Math.max(0.2, size.width / Math.max(1, size.height))
  const area = blocks.reduce((sum, one) => sum + (one.w + BETWEEN) * (one.h + BETWEEN + LABEL), 0)
  const afar = Math.sqrt((size.width * size.height) / Math.max(1, area))
  const label = by === 'none' ? 0 : blocks.length <= FEW ? Math.max(LABEL, LABEL_PX / afar) : LABEL
  const widest = Math.max(1, ...blocks.map((one) => one.w))
  let best = null
  for (const factor of WIDTHS) {
    const found = rows(blocks, Math.max(widest, Math.sqrt(area * aspect) * factor), label)
    const scale = Math.min(size.width / found.width, size.height / found.height)
    if (!best || scale > best.scale) best = { ...found, scale }
  }
  const x = new Float32Array(fleet.n)
  const y = new Float32Array(fleet.n)
  blocks.forEach(({ nodes, w }, n) => {
    const at = best.places[n]
    nodes.forEach((node, k) => {
      x[node] = at.x + (k % w)
      y[node] = at.y + Math.floor(k / w)
    })
  })
  const groups = blocks.map((one, n) => ({ name: one.name, w: one.w, h: one.h, count: one.nodes.length, ...best.places[n] }))
  return { x, y, groups, label, width: best.width, height: best.height }
}

function membersOf(fleet, by) {
  if (by === 'none') return [{ name: '', nodes: Array.from({ length: fleet.n }, (_, node) => node) }]
  const { names, of } = fleet.places[by]
  const some = names.map((name) => ({ name, nodes: [] }))
  const nowhere = { name: '', nodes: [] }
  for (let node = 0; node < fleet.n; node += 1) (of[node] < 0 ? nowhere : some[of[node]]).nodes.push(node)
  const order = new Intl.Collator('en', { numeric: true })
  some.sort((a, b) => order.compare(a.name, b.name))
  return [...some, nowhere].filter((one) => one.nodes.length)
}

/** Columns and rows of a block: a little wider than high, and with few places that stay empty. */
function shape(count) {
  const about = Math.sqrt(count * 1.6)
  let best = { w: 1, h: count, cost: Infinity }
  for (let w = Math.max(1, Math.floor(about * 0.8)); w <= Math.ceil(about * 1.3) + 1; w += 1) {
    const h = Math.ceil(count / w)
    const cost = (w * h - count) / count + Math.abs(Math.log(w / about)) * 0.5
    if (cost < best.cost) best = { w: Math.min(w, count), h, cost }
  }
  return best
}

function rows(blocks, wanted, label) {
  const places = []
  let x = 0
  let y = 0
  let high = 0
  let width = 1
  for (const { w, h } of blocks) {
    if (x > 0 && x + w > wanted) {
      x = 0
      y += high + BETWEEN
      high = 0
    }
    places.push({ x, y: y + label })
    width = Math.max(width, x + w)
    high = Math.max(high, h + label)
    x += w + BETWEEN
  }
  return { places, width, height: Math.max(1, y + high) }
}
