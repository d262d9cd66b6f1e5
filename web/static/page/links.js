// Finds the addresses in a text that somebody wrote. Pure; no part of the text is ever treated as markup.

/** Matches an address without spaces, and without characters that change the text's direction and could make it look like another address. */
const address = /https:\/\/[^\s<>"\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff]+/giu;
/** The characters that end the sentence around an address and do not belong to it. */
const after = '.,;:!?\'*_~»”’…';
const brackets = [['(', ')'], ['[', ']'], ['{', '}']];

/**
 * Cuts the text into pieces, in their order and without losing a character.
 * @param {string} text
 * @returns {{text: string, href?: string}[]} `href`: of an https address
 */
export function pieces(text) {
  /** @type {{text: string, href?: string}[]} */
  const found = [];
  let at = 0;
  for (const { 0: match, index = 0 } of text.matchAll(address)) {
    const shown = trimmed(match);
    const href = hrefOf(shown);
    if (!href) continue;
    if (index > at) found.push({ text: text.slice(at, index) });
    found.push({ text: shown, href });
    at = index + shown.length;
  }
  if (at < text.length) found.push({ text: text.slice(at) });
  return found;
}

/** @param {string} match */
function trimmed(match) {
  /** For each closing bracket, how many in the match have no opening one. */
  const unopened = new Map(brackets.map(([open, close]) => [close, match.split(close).length - match.split(open).length]));
  let end = match.length;
  for (; end > 0; end--) {
    const last = match[end - 1];
    const more = unopened.get(last) ?? 0;
    if (more > 0) unopened.set(last, more - 1);
    else if (!after.includes(last)) break;
  }
  return match.slice(0, end);
}

/**
 * Returns the address of a text. Empty when the text is no https address, or names a user or a password, which could look like another host.
 * @param {string} text
 */
function hrefOf(text) {
  try {
    const { protocol, username, password, href } = new URL(text);
    return protocol === 'https:' && username === '' && password === '' ? href : '';
  } catch {
    return '';
  }
}
