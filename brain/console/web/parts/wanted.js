// The page that somebody wanted when they had to log in first: of this tab alone, for once.

const KEPT = 'gpuward-wanted'

/** Remembers where this tab was led. */
export function want(path) {
  try {
    sessionStorage.setItem(KEPT, path)
  } catch {
    // A browser that keeps nothing leads to the first page: no harm
  }
}

/** Returns the page that was wanted, and forgets it; empty: none, or none of ours. */
export function wanted() {
  try {
    const path = sessionStorage.getItem(KEPT) ?? ''
    sessionStorage.removeItem(KEPT)
    return path.startsWith('/') && !path.startsWith('//') ? path : ''
  } catch {
    return ''
  }
}
