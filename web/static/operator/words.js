// What the operator's page says, with its numbers and times.

import { speak } from '../page/language.js';

/** @typedef {typeof import('./words/en.js').default} English */
/** @typedef {import('../page/language.js').Words<English>} Words */

export const { say, locale, listed, sayAll } = await speak((language) => import(`./words/${language}.js`).then((module) => /** @type {Words} */ (module.default)));

const plain = new Intl.NumberFormat(locale);
const whole = new Intl.NumberFormat(locale, { style: 'percent', maximumFractionDigits: 0 });
const fine = new Intl.NumberFormat(locale, { style: 'percent', maximumFractionDigits: 1 });
const clockForm = new Intl.DateTimeFormat(locale, { timeStyle: 'medium' });
const dayForm = new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeStyle: 'medium' });
const relative = new Intl.RelativeTimeFormat(locale, { style: 'short', numeric: 'auto' });

/** @param {number} n */
export const number = (n) => plain.format(n);

/** @param {number} part of 1 */
export const percent = (part) => (part > 0 && part < 0.0995 ? fine : whole).format(part);

/** @param {number} perSecond */
export function bits(perSecond) {
  const [size, unit] = perSecond >= 1e9 ? [1e9, 'gigabit'] : perSecond >= 1e6 ? [1e6, 'megabit'] : [1e3, 'kilobit'];
  const value = perSecond / size;
  return new Intl.NumberFormat(locale, { style: 'unit', unit: `${unit}-per-second`, unitDisplay: 'short', maximumFractionDigits: value < 10 ? 1 : 0 }).format(value);
}

/** @param {number} ms such as 0.4 ms, 140 ms or 3.4 s */
export function lasted(ms) {
  const [value, unit] = ms < 1000 ? [ms, 'millisecond'] : [ms / 1000, 'second'];
  return new Intl.NumberFormat(locale, { style: 'unit', unit, unitDisplay: 'short', maximumFractionDigits: value < 10 ? 1 : 0 }).format(value);
}

/**
 * Today's times are without their day.
 * @param {Date} at
 */
export const clock = (at) => (at.toDateString() === new Date().toDateString() ? clockForm : dayForm).format(at);

/** @param {Date} at */
export function ago(at) {
  const seconds = Math.round((at.getTime() - Date.now()) / 1000);
  if (seconds > -60) return relative.format(Math.min(seconds, 0), 'second');
  if (seconds > -3600) return relative.format(Math.round(seconds / 60), 'minute');
  return relative.format(Math.round(seconds / 3600), 'hour');
}
