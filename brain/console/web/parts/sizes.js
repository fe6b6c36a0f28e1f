// Sizes as people read them.

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB']

/** Bytes with the unit that suits. */
export function size(count) {
  let unit = 0
  let value = count
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024
    unit += 1
  }
  return `${unit && value < 10 ? value.toFixed(1) : Math.round(value)} ${UNITS[unit]}`
}
