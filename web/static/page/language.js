// Speaks the browser's language with the sentences of one page. Only that language is loaded.

/** @typedef {Partial<Record<Intl.LDMLPluralRule, string>> & {other: string}} Forms */
/**
 * Every other language of the sentences E.
 * @template E
 * @typedef {{readonly [K in keyof E]: E[K] extends string ? string : Readonly<Forms>}} Words
 */
/**
 * @template S
 * @typedef {S extends `${string}{${infer Blank}}${infer Rest}` ? Blank | Blanks<Rest> : never} Blanks
 */
/**
 * @template E
 * @template {keyof E} K
 * @typedef {E[K] extends string ? {[B in Blanks<E[K]>]: string | number}
 *   : {count: number} & {[B in Exclude<Blanks<E[K][keyof E[K]]>, 'count'>]: string | number}} Values
 */
/**
 * @template E
 * @typedef {<K extends keyof E>(key: K, ...given: keyof Values<E, K> extends never ? [] : [Values<E, K>]) => string} Say
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

/**
 * Loads the sentences of the chosen language.
 * @template E
 * @param {(language: string) => Promise<Words<E>>} load of `en`, `de` or `ar`
 * @returns {Promise<{say: Say<E>, locale: string, listed: (names: string[]) => string, sayAll: () => void}>} `locale` is for numbers, lists and
 *   times; `sayAll` says the document's own sentences, of which it has the keys
 */
export async function speak(load) {
  let tag = choose([new URLSearchParams(location.search).get('lang') ?? '', ...navigator.languages]);
  const words = await load(base(tag)).catch(() => {
    tag = 'en';
    return load(tag);
  });
  const direction = directions[base(tag)];
  const plural = new Intl.PluralRules(tag);
  const digits = new Intl.NumberFormat(tag);
  /**
   * A name keeps its direction to itself.
   * @param {string | number} value
   */
  const inserted = (value) => {
    if (typeof value === 'number') return digits.format(value);
    return direction === 'rtl' || rightToLeft.test(value) ? `\u2068${value}\u2069` : value;
  };
  /** @type {Say<E>} */
  const say = (key, ...given) => {
    const values = /** @type {Record<string, string | number>} */ (given[0] ?? {});
    const known = /** @type {string | Readonly<Forms>} */ (words[key]);
    const text = typeof known === 'string' ? known : known[plural.select(Number(values.count))] ?? known.other;
    return text.replace(/\{(\w+)\}/g, (_, blank) => inserted(values[blank]));
  };
  const sayAll = () => {
    [document.documentElement.lang, document.documentElement.dir] = [tag, direction];
    for (const [name, target] of [['say', ''], ['label', 'aria-label'], ['title', 'title'], ['hint', 'placeholder']]) {
      for (const element of document.querySelectorAll(`[data-${name}]`)) {
        const plain = /** @type {(key: string, given: object) => string} */ (/** @type {unknown} */ (say));
        const text = plain(element.getAttribute(`data-${name}`) ?? '', {});
        const key = target === 'title' ? element.getAttribute('data-key') : null;
        if (target === '') element.textContent = text;
        else element.setAttribute(target, key ? plain('with.key', { label: text, key }) : text);
      }
    }
  };
  return { say, locale: tag, listed: (names) => new Intl.ListFormat(tag).format(names.map(inserted)), sayAll };
}
