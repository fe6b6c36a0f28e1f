// A report as one file: no script, no other file, its style in it; what it names is text. It is made here, of the page's own templates.

import { html, render } from '../vendor/lit-html/lit-html.js'
import { say } from '../app.js'
import { language, t } from '../words.js'
import { period, report } from './report_view.js'

// Without < > &: the serializer writes no style, but whoever changes it should not need to know
const STYLE = `
body { font: 15px/1.45 system-ui, "Noto Sans", "Noto Sans CJK SC", "PingFang SC", "Microsoft YaHei", sans-serif; color: #13232a; background: #f4f7f8; margin: 0; padding: 16px }
main { max-width: 960px; margin: 0 auto } h1 { font-size: 22px; margin: 0 0 4px } h2 { font-size: 16px; margin: 0 0 8px }
section { background: #fff; border: 1px solid #d3dde1; border-radius: 8px; padding: 12px 14px; margin: 12px 0 }
p, li { margin: 4px 0; overflow-wrap: anywhere } ul { list-style: none; margin: 0; padding: 0 } a { color: #0b6a7d }
.small { color: #4a5f68; font-size: 13px } .good { color: #1d6b3a; font-weight: 600 } .count { color: #4a5f68; font-weight: 400 }
.severity { font-weight: 700; font-size: 12px; border: 1px solid; border-radius: 4px; padding: 0 5px } .P0, .P1 { color: #b3261e } .P2 { color: #8a5200 }
code { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: 13px }
.tiles { display: flex; flex-wrap: wrap; gap: 8px; margin: 0 } .tile { border: 1px solid #d3dde1; border-radius: 6px; padding: 6px 10px; min-width: 120px }
dt { color: #4a5f68; font-size: 13px } dd { margin: 0 } dd strong { font-size: 20px; display: block } dd span { display: block }
.wide { overflow-x: auto } table { border-collapse: collapse; width: 100% } th, td { text-align: left; padding: 5px 10px 5px 0; border-top: 1px solid #d3dde1; vertical-align: top }
thead th { border-top: 0; color: #4a5f68; font-size: 13px; font-weight: 600 } thead td { border: 0 } tbody th { font-weight: 600; overflow-wrap: anywhere } .bar-of { fill: #0b6a7d }
@media print { body { background: #fff; padding: 0 } section { break-inside: avoid } }`

/** Makes the file, and lets the browser keep it. */
export function save(data, state) {
  const url = URL.createObjectURL(new Blob([whole(data, state)], { type: 'text/html' }))
  const link = document.createElement('a')
  Object.assign(link, { href: url, download: `gpuward-${state.status?.cell ?? ''}-${new Date(data.to * 1000).toISOString().slice(0, 10)}.html` })
  link.click()
  setTimeout(() => URL.revokeObjectURL(url), 60_000)
  say(t('report-saved'))
}

function whole(data, state) {
  const title = `gpuward · ${state.status?.cell ?? ''} · ${t('nav-reports')}`
  const body = made(html`<main><h1>${title}</h1><p>${period(data)}</p>${report(data)}
    <p class="small">${t('report-made', { version: state.status?.version ?? '' })}</p></main>`)
  const policy = "default-src 'none'; style-src 'unsafe-inline'"
  return `<!doctype html>
<html lang="${language() === 'zh' ? 'zh-Hans' : 'en'}"><head><meta charset="utf-8"/><meta name="viewport" content="width=device-width, initial-scale=1"/>
<meta http-equiv="Content-Security-Policy" content="${policy}"/>${written(made(html`<title>${title}</title>`).firstElementChild)}<style>${STYLE}
</style></head><body>${written(body.firstElementChild)}</body></html>
`
}

/** Elements of a template, without what lit keeps in them; links lead to this console, from wherever the file is read. */
function made(template) {
  const holder = document.createElement('div')
  render(template, holder)
  const walker = document.createTreeWalker(holder, NodeFilter.SHOW_COMMENT)
  const comments = []
  while (walker.nextNode()) comments.push(walker.currentNode)
  for (const one of comments) one.remove()
  for (const link of holder.querySelectorAll('a[href]')) link.href = new URL(link.getAttribute('href'), location.href).href
  for (const one of holder.querySelectorAll('[tabindex]')) one.removeAttribute('tabindex')
  return holder
}

function written(element) {
  return new XMLSerializer().serializeToString(element)
}
