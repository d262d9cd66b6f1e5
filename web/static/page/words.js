// What the page of a call says.

import { speak } from './language.js';

/** @typedef {typeof import('./words/en.js').default} English */
/** @typedef {import('./language.js').Words<English>} Words */

export const { say, locale, listed, sayAll } = await speak((language) => import(`./words/${language}.js`).then((module) => /** @type {Words} */ (module.default)));

/** @param {number} ms such as 120 ms or 3.4 s */
export function lasted(ms) {
  if (ms < 1000) return say('lasted.milliseconds', { number: Math.round(ms) });
  const seconds = ms / 1000;
  return say('lasted.seconds', { number: seconds < 10 ? Math.round(seconds * 10) / 10 : Math.round(seconds) });
}

/**
 * @param {Element} button
 * @param {string} label
 * @param {string} key that presses it
 */
export function name(button, label, key) {
  button.setAttribute('aria-label', label);
  button.setAttribute('title', say('with.key', { label, key }));
}
