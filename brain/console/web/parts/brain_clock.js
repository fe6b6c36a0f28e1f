// What time it is for the brain: whose clocks are wrong by hours must not read that a fault of this minute is as old.

const NEAR_MS = 2000 // the answers say their time in whole seconds, and take a moment
let aheadMs = 0 // of this browser's clock

/** Takes note of the time that an answer says (`Date`); `begunMs`: when it was asked for, by this browser's clock. */
export function heard(said, begunMs) {
  const at = Date.parse(said ?? '')
  if (!Number.isFinite(at)) return
  const ahead = at + 500 - (begunMs + Date.now()) / 2
  aheadMs = Math.abs(ahead) < NEAR_MS ? 0 : ahead
}

/** Now, in ms since 1970, as the times of the brain are. */
export function brainNow() {
  return Date.now() + aheadMs
}
