// The initials and the colour that stand for a person without a picture. Pure.

/** Missing in some older browsers, where a character that is made of several is shown by its first one. */
const characters = Intl.Segmenter && new Intl.Segmenter(undefined, { granularity: 'grapheme' });

/** @param {string} name */
export function initials(name) {
  const words = name.trim().split(/\s+/).filter(Boolean);
  const letters = words.length > 1 ? [words[0], words[words.length - 1]] : words;
  return letters.map((word) => first(word).toUpperCase()).join('');
}

/** @param {string} word */
function first(word) {
  for (const { segment } of characters?.segment(word) ?? []) return segment;
  return [...word][0];
}

/** The number of colours. It is a prime above an alphabet's length, so that names that differ in one letter or digit differ in colour. */
const COLOURS = 29;
/** The step around the circle of hues from one colour to the next, so that neighbours in the alphabet are far apart. */
const STEP = 11;

/**
 * Returns a name's colour, which is dark enough for white letters.
 * @param {string} text
 */
export function colour(text) {
  let hash = 0;
  for (const character of text) hash = (hash * 31 + (character.codePointAt(0) ?? 0)) % COLOURS;
  const hue = (hash * STEP) % COLOURS;
  return `oklch(${hue % 2 === 0 ? 0.38 : 0.5} 0.09 ${Math.round((hue * 360) / COLOURS)})`;
}
