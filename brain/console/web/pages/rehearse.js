// A drill on simulated machines: choose one, start it, and watch what gpuward makes of it.

import { html, nothing } from '../vendor/lit-html/lit-html.js'
import { draw, go, say } from '../app.js'
import { get, path, Problem, query } from '../net.js'
import { about, course, isOver } from '../parts/drill_course.js'
import { askDrill, may } from '../parts/verbs.js'
import { t, written } from '../words.js'

const MARGIN_S = 2 // the log's clock may be behind the brain's
const CHAINS = 6 // incidents of one drill that are shown with their ladders; the others as lines
const GROUPS = ['alone', 'asks', 'person', 'repair']
const ABSENT = [404, 503] // `drill` is not set; no simulated machine answers
let ticking = 0

export function title(state) {
  return state.data?.chains ? `${state.at.query.drill ?? ''} · ${t('nav-rehearse')}` : t('nav-rehearse')
}

export async function load(at, { signal }) {
  let found
  try {
    found = await get('drill', { signal })
  } catch (error) {
    if (!(error instanceof Problem) || !ABSENT.includes(error.status)) throw error
    return { absent: error.status, detail: error.message }
  }
  const { drill, on = '', at: began } = at.query
  const since = Date.parse(began) / 1000 - MARGIN_S
  if (Number.isNaN(since)) return { ...found, broken: await brokenNodes(signal) }
  const { incidents } = await get(`incidents${query({ all: true, since: Math.max(0, since), limit: 100 })}`, { signal })
  const mine = incidents.filter((one) => about(one, on.split(',')))
  const own = mine.filter((one) => one.state !== 'explained').slice(-CHAINS).reverse()
  const chains = await Promise.all(own.map((one) => get(`explain/${path(one.id)}`, { signal })))
  return { ...found, drill: found.drills.find((one) => one.name === drill), began, incidents: mine, chains }
}

export function concerns(note, state) {
  if (!state.data || state.data.absent) return false
  return note.kind.startsWith('incident.') || (state.data.chains ?? []).some(({ incident }) => incident.id === note.incident)
}

export function drawn(state) {
  clearTimeout(ticking)
  if (state.data?.chains && !isOver(state.data)) ticking = setTimeout(draw, 1000)
}

export function left() {
  clearTimeout(ticking)
}

export function view(state) {
  if (state.data.absent) return absent(state.data)
  return state.data.chains ? course(state, { start: (drill, node) => start(state, drill, node) }) : choice(state)
}

function absent({ absent: status, detail }) {
  return html`<h1>${t('nav-rehearse')}</h1><section class="card">
    <h2>${t(status === 404 ? 'drill-not-set' : 'drill-nobody')}</h2>
    <p>${t('drill-what-for')}</p>
    ${status === 404 ? nothing : html`<p class="small">${detail}</p>`}
    <h3>${t('drill-here')}</h3><pre><code>gpuward up --nodes 8</code></pre>
    <h3>${t('drill-in-a-cell')}</h3><pre><code>drill = true</code></pre><p class="small">${t('drill-in-a-cell-why')}</p>
  </section>`
}

function choice(state) {
  const { drills, nodes, broken } = state.data
  const { own } = state
  const chosen = drills.find((one) => one.name === own.drill)
  const wanted = (own.filter ?? '').trim().toLowerCase()
  const fits = (one) => `${one.name} ${one.summary} ${one.ends} ${written(one.summary)} ${written(one.ends)}`.toLowerCase().includes(wanted)
  const groups = GROUPS.map((group) => [group, drills.filter((one) => groupOf(one) === group && fits(one))]).filter(([, found]) => found.length)
  return html`<h1>${t('nav-rehearse')}</h1>
    <p class="small">${t('drill-what-for')}</p>
    <form class="drills" id="drills" @submit=${(event) => { event.preventDefault(); ask(state, chosen, nodes) }}>
      <label>${t('drill-filter')}<input type="search" autocomplete="off" .value=${own.filter ?? ''} placeholder="xid, link, hung …"
        @input=${(event) => { own.filter = event.target.value; draw() }}></label>
      ${groups.map(([group, found]) => html`<fieldset class="drill-group"><legend>${t(`drill-group-${group}`)} <span class="count">${found.length}</span></legend>
        ${found.map((one) => option(one, own))}</fieldset>`)}
      ${groups.length ? nothing : html`<p class="nothing">${t('drill-none')}</p>`}
    </form>
    <div class="bar drill-bar">${may(state, 'drill') ? html`
      ${chosen?.affects === 'all' ? html`<span class="drill-where">${t('drill-on-all')}</span>`
        : html`<label class="drill-where"><span class="hidden">${t('node')}</span><select form="drills" @change=${(event) => { own.node = event.target.value; draw() }}>
          <option value="">${t('drill-on-first')}</option>
          ${nodes.map((node) => html`<option value=${node} ?selected=${node === own.node}>${broken.has(node) ? t('drill-broken', { node }) : node}</option>`)}</select></label>`}
      <button type="submit" form="drills" class="main" ?disabled=${!chosen}>${chosen ? t(chosen.breaks ? 'drill-start' : 'drill-repair', { name: chosen.name }) : t('drill-choose')}</button>`
      : html`<p class="small">${t(state.me?.how ? 'may-not-drill' : 'log-in-to-drill')}</p>`}</div>`
}

function option(one, own) {
  const chosen = one.name === own.drill
  return html`<label class=${chosen ? 'drill chosen' : 'drill'}>
    <input type="radio" name="drill" value=${one.name} .checked=${chosen} @change=${() => { own.drill = one.name; draw() }}>
    <span><code>${one.name}</code>${one.affects === 'one' ? nothing : html` <span class="tag">${t(`drill-affects-${one.affects}`)}</span>`}
      <span class="drill-what">${written(one.summary)}</span>
      ${chosen ? html`<span class="drill-ends"><b>${t('drill-ends')}</b> <span>${written(one.ends)}</span></span>` : nothing}</span>
  </label>`
}

function groupOf(drill) {
  if (!drill.breaks) return 'repair'
  if (drill.approval) return 'asks'
  return drill.heals ? 'alone' : 'person'
}

function ask(state, drill, nodes) {
  if (drill) start(state, drill, drill.affects === 'all' ? '' : nodes.includes(state.own.node) ? state.own.node : '')
}

function start(state, drill, node) {
  askDrill(state, drill, node, async (injected) => {
    if (!injected.breaks) {
      say(t('drill-repaired', { nodes: injected.nodes.join(', ') }))
      return
    }
    const on = injected.affects === 'all' ? '*' : injected.nodes.join(',')
    await go(`/rehearse${query({ drill: injected.name, on, at: injected.at })}`)
  })
}

async function brokenNodes(signal) {
  const { incidents } = await get('incidents?limit=200', { signal })
  return new Set(incidents.map((one) => one.node))
}

