// Which parts of what somebody wrote are addresses. Pure; nothing of it is ever markup.

/** Neither spaces nor what changes the direction of the text: it could show another address than it is. */
const address = /https:\/\/[^\s<>"\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff]+/giu;
/** The end of the sentence around it. */
const after = '.,;:!?\'*_~»”’…';
const brackets = [['(', ')'], ['[', ']'], ['{', '}']];

/**
 * The text in pieces, in its order and without a character lost.
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
  /** Of each closing bracket: how many have not been opened. */
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
 * Empty for what is none, and for one with a user's name, which looks like another host.
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
