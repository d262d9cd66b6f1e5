// Before joining: who is in the room that the link leads to.

import { find } from './elements.js';
import { whoIsHere } from './sentences.js';
import { api } from './site.js';

const EVERY_MS = 10000;

/**
 * Until the lobby is left, and again when it is back.
 * @param {string} token
 * @param {string} room empty where the token leads to none in particular
 */
export function showWhoIsHere(token, room) {
  if (token === '' || room === '') return;
  const [lobby, line] = [find('#lobby', HTMLElement), find('#here', HTMLElement)];
  const look = async () => {
    if (lobby.hidden || document.hidden) return;
    const text = whoIsHere(await namesIn(token, room));
    if (line.textContent === text) return; // Or it would be read out again.
    line.textContent = text;
    line.hidden = text === '';
  };
  look();
  setInterval(look, EVERY_MS);
  document.addEventListener('visibilitychange', look);
}

/**
 * @param {string} token
 * @param {string} room
 * @returns {Promise<string[] | null>} null when nobody knows
 */
async function namesIn(token, room) {
  try {
    const response = await fetch(api(`rooms/${encodeURIComponent(room)}/roster`), { headers: { Authorization: `Bearer ${token}` } });
    const { state, people } = await response.json();
    return response.ok && state !== 'unknown' ? people.map((/** @type {{name?: string, identity: string}} */ { name, identity }) => name || identity) : null;
  } catch {
    return null;
  }
}
