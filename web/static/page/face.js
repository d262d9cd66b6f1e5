// For somebody without a picture. Pure.

/** @param {string} name */
export function initials(name) {
  const words = name.trim().split(/\s+/).filter(Boolean);
  const letters = words.length > 1 ? [words[0], words[words.length - 1]] : words;
  return letters.map((word) => [...word][0].toUpperCase()).join('');
}

/** A prime above an alphabet's length: names that differ in one letter or digit have two colours. */
const COLOURS = 29;
/** Around the circle of hues, so that neighbours in the alphabet are far apart. */
const STEP = 11;

/**
 * Dark enough for white letters.
 * @param {string} text
 */
export function colour(text) {
  let hash = 0;
  for (const character of text) hash = (hash * 31 + (character.codePointAt(0) ?? 0)) % COLOURS;
  const hue = (hash * STEP) % COLOURS;
  return `oklch(${hue % 2 === 0 ? 0.38 : 0.5} 0.09 ${Math.round((hue * 360) / COLOURS)})`;
}
