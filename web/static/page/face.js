// For somebody without a picture. Pure.

/** @param {string} name */
export function initials(name) {
  const words = name.trim().split(/\s+/).filter(Boolean);
  const letters = words.length > 1 ? [words[0], words[words.length - 1]] : words;
  return letters.map((word) => [...word][0].toUpperCase()).join('');
}

/**
 * Dark enough for white letters.
 * @param {string} text
 */
export function colour(text) {
  let hash = 0;
  for (const character of text) hash = (hash * 31 + (character.codePointAt(0) ?? 0)) % 3600;
  return `hsl(${hash % 360} 34% 32%)`;
}
