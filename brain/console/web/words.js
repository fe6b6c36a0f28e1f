// What people read, in their language. One catalogue for each (words/*.ftl, Project Fluent); what the brain says in one language
// only stands as it is.

import { FluentBundle, FluentResource } from './vendor/fluent/index.js'

export const LANGUAGES = { en: 'English', zh: '中文' }
const KEPT = 'gpuward-language'
const WRITTEN = /^(said-of-[\w-]+) = (.+)$/gm
let bundle = null
let english = null
let chosen = 'en'
let own = null // [English words, key], the longest first

/** Loads the catalogue of the language that was chosen here, else of the browser's. */
export async function begin() {
  const kept = remembered(KEPT)
  const wanted = kept || (navigator.languages ?? []).map((one) => one.slice(0, 2)).find((one) => one in LANGUAGES) || 'en'
  await choose(wanted in LANGUAGES ? wanted : 'en')
}

/** Changes the language, and remembers it in this browser. */
export async function choose(language, { keep = false } = {}) {
  const [first, own] = await Promise.all([english ?? load('en'), language === 'en' ? null : load(language)])
  english = first
  bundle = own ?? english
  chosen = language
  document.documentElement.lang = language === 'zh' ? 'zh-Hans' : language
  if (keep) remember(KEPT, language)
}

/** The language in use: `en` or `zh`. */
export function language() {
  return chosen
}

/** Returns a text of the catalogue; one that it lacks in English. */
export function t(id, values) {
  for (const one of [bundle, english]) {
    const message = one?.getMessage(id)
    if (message?.value) return one.formatPattern(message.value, values)
  }
  return id
}

/** Returns a text of the catalogue if it has one, else the word itself: states and kinds come from the brain. */
export function word(prefix, value) {
  const id = `${prefix}-${value}`.replace(/[^A-Za-z0-9_-]/g, '-')
  return bundle?.hasMessage(id) || english?.hasMessage(id) ? t(id) : value
}

/** Of texts in two languages ({en, zh}) the one for this reader. */
export function either(texts) {
  return (texts && (texts[chosen] || texts.en)) || ''
}

/**
 * What runbooks, actions and drills say of themselves, in the reader's language: their own words are English, and their key in
 * the catalogue is found by them. What a site has written itself stands as it is.
 */
export function written(text) {
  if (chosen === 'en' || !text) return text
  own ??= english.written()
  const [, id] = own.find(([one]) => text === one) ?? []
  return id && bundle.hasMessage(id) ? t(id) : text
}

/** Why, for this reader: what has `because` and `because_zh`. */
export function why(one) {
  return either({ en: one.because, zh: one.because_zh })
}

/** The language in which `why` answers, for what reads it aloud. */
export function whyIn(one) {
  return chosen === 'zh' && one.because_zh ? 'zh-Hans' : 'en'
}

/** What this browser remembers under a name; empty: nothing, or it may not. */
export function remembered(name) {
  try {
    return localStorage.getItem(name) ?? ''
  } catch {
    return ''
  }
}

/** Lets this browser remember it, if it may. */
export function remember(name, value) {
  try {
    localStorage.setItem(name, value)
  } catch {
    // A browser that keeps nothing asks again: no harm
  }
}

async function load(name) {
  const answer = await fetch(`/web/words/${name}.ftl`)
  if (!answer.ok) throw new Error(`the words of ${name}: ${answer.status}`)
  const made = new FluentBundle(name, { useIsolating: false })
  const text = await answer.text()
  made.addResource(new FluentResource(text))
  made.written = () => [...text.matchAll(WRITTEN)].map(([, id, words]) => [words, id]).sort(([a], [b]) => b.length - a.length)
  return made
}
