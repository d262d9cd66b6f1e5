// Says what the page says in the browser's language. Only that language is loaded.

/** @typedef {typeof import('./words/en.js').default} English */
/** @typedef {Partial<Record<Intl.LDMLPluralRule, string>> & {other: string}} Forms */
/** @typedef {{readonly [K in keyof English]: English[K] extends string ? string : Readonly<Forms>}} Words every other language */
/**
 * @template S
 * @typedef {S extends `${string}{${infer Blank}}${infer Rest}` ? Blank | Blanks<Rest> : never} Blanks
 */
/**
 * @template {keyof English} K
 * @typedef {English[K] extends string ? {[B in Blanks<English[K]>]: string | number}
 *   : {count: number} & {[B in Exclude<Blanks<English[K][keyof English[K]]>, 'count'>]: string | number}} Values
 */

/** @type {Record<string, 'ltr' | 'rtl'>} */
const directions = { en: 'ltr', de: 'ltr', ar: 'rtl' };
/** Whatever is written from right to left. */
const rightToLeft = /[\u0590-\u08ff\ufb1d-\ufefc]/;

/**
 * The first wish that can be met, with its region: numbers and times follow it. English is for everybody else.
 * @param {readonly string[]} wishes
 */
export const choose = (wishes) => wishes.find((tag) => Object.hasOwn(directions, base(tag))) ?? 'en';

/** @param {string} tag may be anybody's */
function base(tag) {
  try {
    return new Intl.Locale(tag).language;
  } catch {
    return '';
  }
}

/** @param {string} tag */
const load = (tag) => import(`./words/${base(tag)}.js`).then((module) => /** @type {Words} */ (module.default));

let tag = choose([new URLSearchParams(location.search).get('lang') ?? '', ...navigator.languages]);
const words = await load(tag).catch(() => {
  tag = 'en';
  return load(tag);
});
/** For numbers, lists and times. */
export const locale = tag;
const direction = directions[base(tag)];
const plural = new Intl.PluralRules(tag);
const digits = new Intl.NumberFormat(tag);

/**
 * @template {keyof English} K
 * @param {K} key
 * @param {keyof Values<K> extends never ? [] : [Values<K>]} given
 */
export function say(key, ...given) {
  /** @type {Record<string, string | number>} */
  const values = given[0] ?? {};
  /** @type {string | Readonly<Forms>} */
  const known = words[key];
  const text = typeof known === 'string' ? known : known[plural.select(Number(values.count))] ?? known.other;
  return text.replace(/\{(\w+)\}/g, (_, blank) => inserted(values[blank]));
}

/**
 * A name keeps its direction to itself.
 * @param {string | number} value
 */
function inserted(value) {
  if (typeof value === 'number') return digits.format(value);
  return direction === 'rtl' || rightToLeft.test(value) ? `\u2068${value}\u2069` : value;
}

/** @param {string[]} names */
export const listed = (names) => new Intl.ListFormat(tag).format(names.map(inserted));

/** @param {number} ms such as 120 ms or 3.4 s */
export function lasted(ms) {
  if (ms < 1000) return say('lasted.milliseconds', { number: Math.round(ms) });
  const seconds = ms / 1000;
  return say('lasted.seconds', { number: seconds < 10 ? Math.round(seconds * 10) / 10 : Math.round(seconds) });
}

/** The document's own sentences; index.html has their keys. */
export function sayAll() {
  [document.documentElement.lang, document.documentElement.dir] = [tag, direction];
  for (const [name, target] of [['say', ''], ['label', 'aria-label'], ['title', 'title'], ['hint', 'placeholder']]) {
    for (const element of document.querySelectorAll(`[data-${name}]`)) {
      const text = say(/** @type {'close'} */ (element.getAttribute(`data-${name}`)));
      const key = target === 'title' ? element.getAttribute('data-key') : null;
      if (target === '') element.textContent = text;
      else element.setAttribute(target, key ? say('with.key', { label: text, key }) : text);
    }
  }
}
