// Whom one was in a call with: this browser keeps the last of them, to ring them again.

/** @typedef {{identity: string, name: string}} Met */

const KEY = 'holdfast.met';
const MOST = 20;

/** @returns {Met[]} the latest first */
export function readMet() {
  try {
    const kept = JSON.parse(localStorage.getItem(KEY) ?? '[]');
    return kept.filter((/** @type {any} */ one) => typeof one?.identity === 'string' && typeof one?.name === 'string').slice(0, MOST);
  } catch {
    return [];
  }
}

/** @param {readonly Met[]} people */
export function keepMet(people) {
  const now = people.map(({ identity, name }) => ({ identity, name: name || identity }));
  const all = [...now, ...readMet().filter(({ identity }) => !now.some((one) => one.identity === identity))].slice(0, MOST);
  try {
    localStorage.setItem(KEY, JSON.stringify(all));
  } catch {
    // The browser keeps nothing for this page.
  }
}

/**
 * Whom a person means who writes this: a name of somebody met, else an identity.
 * @param {string} written
 * @param {readonly Met[]} met
 * @param {(name: string) => string} identityOf
 * @returns {Met}
 */
export function meant(written, met, identityOf) {
  const same = met.find(({ name, identity }) => identity === written || name.toLowerCase() === written.toLowerCase());
  return same ?? { identity: identityOf(written), name: written };
}
