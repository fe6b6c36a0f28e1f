// The fleet as the page works with it: the columns of /api/v1/fleet as typed arrays, with what hangs on each node.

const made = new WeakMap()
const COLUMNS = { rack: 'racks', leaf: 'leaves', pod: 'pods', job: 'jobs', agent: 'agents', driver: 'drivers' }

/** What nodes can be grouped by, beside `none`. */
export const GROUPS = Object.keys(COLUMNS)

/**
 * Returns the model of an answer, the same one for the same answer. Columns have an entry for each node. `places[by]` is {names,
 * of}, `of` an index into names, -1: not known. `cards`: node -> [{card, state, incident}] of those GPUs about which an incident is.
 */
export function model(answer) {
  const known = made.get(answer)
  if (known) return known
  const held = new Uint8Array(answer.names.length)
  for (const node of answer.held) held[node] = 1
  const cards = new Map()
  answer.cards.node.forEach((node, n) => {
    if (!cards.has(node)) cards.set(node, [])
    cards.get(node).push({ card: answer.cards.card[n], state: answer.cards.state[n], incident: answer.cards.incident[n] })
  })
  for (const some of cards.values()) some.sort((a, b) => (a.card < b.card ? -1 : 1))
  const places = Object.fromEntries(Object.entries(COLUMNS).map(([by, names]) => [by, { names: answer[names], of: Int32Array.from(answer[by]) }]))
  const one = {
    n: answer.names.length,
    names: answer.names,
    words: answer.words,
    state: Uint8Array.from(answer.state),
    incident: Int32Array.from(answer.incident),
    held,
    gpus: Int16Array.from(answer.gpus),
    cards,
    places,
    incidents: answer.incidents,
    at: answer.at,
    since: answer.since,
    index: null,
  }
  made.set(answer, one)
  return one
}

/** Returns a node's number; -1: there is none of this name. */
export function numberOf(fleet, name) {
  fleet.index ??= new Map(fleet.names.map((each, n) => [each, n]))
  return fleet.index.get(name) ?? -1
}

/** Returns a place of a node (`rack`, `leaf`, ...); empty: not known. */
export function placeOf(fleet, by, node) {
  const { names, of } = fleet.places[by]
  return of[node] < 0 ? '' : names[of[node]]
}

/** Returns the most severe open incident of a node: {id, severity, state, cause, scope}; null: none. */
export function incidentOf(fleet, node) {
  const n = fleet.incident[node]
  if (n < 0) return null
  const { id, severity, state, cause, scope } = fleet.incidents
  return { id: id[n], severity: severity[n], state: state[n], cause: cause[n], scope: scope[n] }
}

/** Returns the nodes' numbers that are shown (`shown[node]`), the most urgent first, then by name. */
export function byUrgency(fleet, shown) {
  const buckets = fleet.words.map(() => [])
  for (let node = 0; node < fleet.n; node += 1) if (shown[node]) buckets[fleet.state[node]].push(node)
  return buckets.flat()
}
