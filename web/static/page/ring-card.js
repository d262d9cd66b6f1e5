// Who rings here, over the lobby as over a call. Escape declines.

import { find } from './elements.js';
import { Ringtone } from './ringtone.js';
import { say } from './words.js';

/** @typedef {import('./ringing.js').Ringing} Ringing */

/**
 * @param {Ringing} ringing
 * @param {{inCall: () => boolean, wayTo: (room: string) => Promise<(() => void) | null>}} options `wayTo`: how to enter a room; null, and it is said why, if there is no way
 */
export function showRings(ringing, { inCall, wayTo }) {
  const [card, tone] = [find('#ring', HTMLElement), new Ringtone()];
  /** @type {import('./ringing.js').Incoming | undefined} */
  let shown;
  /** @type {Element | null} */
  let before = null;
  let title = '';
  const paint = () => {
    const [ring] = ringing.incoming;
    if (ring?.id === shown?.id) return;
    if (!shown) [before, title] = [document.activeElement, document.title];
    shown = ring;
    if (!ring) {
      const within = card.contains(document.activeElement);
      card.hidden = true;
      document.title = title;
      tone.stop();
      if (within && before instanceof HTMLElement) before.focus();
      return;
    }
    const who = say('ring.in', { name: ring.name });
    find('#ring-title', HTMLElement).textContent = who;
    find('#ring-text', HTMLElement).textContent = say(inCall() ? 'ring.in.away' : 'ring.in.room', { room: ring.room });
    document.title = `${who} · Holdfast`;
    card.hidden = false;
    tone.start();
    // Nobody who writes loses the field: the card is announced all the same.
    if (!isWriting(document.activeElement)) card.focus();
  };
  /** @param {boolean} accepted */
  const answer = async (accepted) => {
    const ring = shown;
    if (!ring) return;
    const enter = accepted ? await wayTo(ring.room) : null;
    ringing.answer(ring.id, enter !== null, accepted && !enter ? 'needs_link' : undefined);
    enter?.();
  };
  ringing.addEventListener('incoming', paint);
  find('#ring-accept', HTMLButtonElement).addEventListener('click', () => answer(true));
  find('#ring-decline', HTMLButtonElement).addEventListener('click', () => answer(false));
  card.addEventListener('keydown', (event) => {
    event.stopPropagation(); // No letter is a shortcut of the call here.
    if (event.key === 'Escape') answer(false);
  });
}

/** @param {Element | null} element */
function isWriting(element) {
  return element instanceof HTMLTextAreaElement || (element instanceof HTMLInputElement && element.type !== 'checkbox' && element.value !== '');
}
