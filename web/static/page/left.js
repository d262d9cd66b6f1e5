// Who has left since we came, in the People panel: as we saw it, or were told after a gap.

import { find, make, who } from './elements.js';
import { colour, initials } from './face.js';
import { locale, say } from './words.js';

/** @typedef {import('../holdfast/call.js').Call} Call */
/** @typedef {{identity: string, name: string, at: number}} Leaver at is Date.now() */

const most = 20;
const minute = 60_000;

/**
 * Somebody is here while one of their tabs is.
 * @param {readonly Leaver[]} left the newest first
 * @param {readonly {identity: string, name?: string}[]} before
 * @param {readonly {identity: string}[]} now
 * @param {number} at
 * @returns {Leaver[]}
 */
export function leavers(left, before, now, at) {
  const here = new Set(now.map(({ identity }) => identity));
  const gone = new Map(before.filter(({ identity }) => !here.has(identity)).map((entry) => [entry.identity, entry]));
  const older = left.filter(({ identity }) => !here.has(identity) && !gone.has(identity));
  return [...[...gone.values()].map(({ identity, name }) => ({ identity, name: name || identity, at })), ...older].slice(0, most);
}

/**
 * @param {number} ms
 */
export function ago(ms) {
  const minutes = Math.floor(ms / minute);
  if (minutes < 1) return say('just.now');
  const times = new Intl.RelativeTimeFormat(locale);
  return minutes < 60 ? times.format(-minutes, 'minute') : times.format(-Math.floor(minutes / 60), 'hour');
}

/**
 * @param {Call} call
 * @param {((identity: string, name: string) => void) | null} [ring] asks somebody back, where that is allowed
 */
export function showLeft(call, ring = null) {
  const list = find('#left', HTMLElement);
  /** @type {Leaver[]} */
  let left = [];
  let before = call.roster;
  const paint = () => {
    find('#left-title', HTMLElement).hidden = list.hidden = left.length === 0;
    const focused = document.activeElement instanceof HTMLElement && list.contains(document.activeElement) ? document.activeElement.dataset.ring : undefined;
    list.replaceChildren(...left.map(({ identity, name, at }) => {
      const item = make('li', 'person');
      const face = make('span', 'face', initials(name));
      face.style.setProperty('--face', colour(identity));
      face.setAttribute('aria-hidden', 'true');
      item.append(face, who(name), make('span', 'ago', ago(Date.now() - at)));
      if (ring) item.append(back(identity, name, ring));
      return item;
    }));
    for (const button of list.querySelectorAll('button')) if (button.dataset.ring === focused) button.focus();
  };
  paint();
  const timer = setInterval(paint, minute / 2);
  call.addEventListener('left', () => clearInterval(timer), { once: true });
  call.addEventListener('roster', () => {
    left = leavers(left, before, call.roster, Date.now());
    before = call.roster;
    paint();
  });
}

/**
 * @param {string} identity
 * @param {string} name
 * @param {(identity: string, name: string) => void} ring
 */
function back(identity, name, ring) {
  const button = make('button', 'quiet', say('ring'));
  button.type = 'button';
  button.dataset.ring = identity;
  button.setAttribute('aria-label', say('ring.name', { name }));
  button.addEventListener('click', () => ring(identity, name));
  return button;
}
