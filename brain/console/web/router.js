// Which page an address means. brain/console/web_routes.py has the same paths.

const PAGES = [
  ['/', 'now'],
  ['/sign-in', 'sign_in'],
  ['/incidents', 'incidents'],
  ['/incidents/:id', 'incident'],
  ['/fleet', 'fleet'],
  ['/nodes/:name', 'node'],
  ['/cards/:serial', 'card'],
  ['/rules', 'rules'],
  ['/rules/:name', 'rule'],
  ['/runbooks/:name', 'runbook'],
  ['/diagnose', 'diagnose'],
  ['/rehearse', 'rehearse'],
  ['/reports', 'reports'],
  ['/audit', 'audit'],
  ['/evidence/:id+', 'evidence'],
]

const COMPILED = PAGES.map(([path, page]) => {
  const names = []
  const pattern = path.replace(/:(\w+)(\+?)/g, (_, name, rest) => {
    names.push(name)
    return rest ? '(.+)' : '([^/]+)'
  })
  return { page, names, pattern: new RegExp(`^${pattern}$`) }
})

/** Returns {page, args, query} of an address; null: it is no page of ours. */
export function route(url) {
  for (const { page, names, pattern } of COMPILED) {
    const found = pattern.exec(url.pathname)
    if (found) {
      const args = Object.fromEntries(names.map((name, n) => [name, decoded(found[n + 1])]))
      return { page, args, query: Object.fromEntries(url.searchParams) }
    }
  }
  return null
}

/** Calls `go(url)` for links to our own pages instead of loading them anew. */
export function onLinks(go) {
  document.addEventListener('click', (event) => {
    const link = event.target.closest?.('a[href]')
    const plain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey
    if (!link || !plain || event.defaultPrevented || link.target || link.hasAttribute('download')) return
    const url = new URL(link.href)
    if (url.origin !== location.origin || !route(url)) return
    event.preventDefault()
    go(url)
  })
}

function decoded(part) {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}
