// One's own hand and reactions, and those of the others as they float over their tiles.

import { EMOJIS } from '../holdfast/index.js';
import { find } from './elements.js';
import { Menu } from './menu.js';
import { whisper } from './notices.js';

/** @typedef {import('../holdfast/call.js').Call} Call */

/** @type {Record<string, string>} */
const names = { '👍': 'thumbs up', '👏': 'applause', '❤️': 'heart', '😂': 'laughter', '😮': 'surprise', '🎉': 'celebration' };
/** Named to who hears them. */
const MOST_NAMES = 3;

export class Gestures {
  #call;
  #menu;
  #hand = find('#hand', HTMLButtonElement);
  #button = find('#react', HTMLButtonElement);
  /** @type {Set<string>} peers whose hands were up */
  #raised;

  /**
   * @param {Call} call
   * @param {(peer: string, emoji: string) => void} show
   */
  constructor(call, show) {
    this.#call = call;
    const stop = new AbortController();
    const { signal } = stop;
    this.#menu = new Menu(find('#stage', HTMLElement), 'reactions', signal);
    this.#raised = this.#up();
    this.#hand.addEventListener('click', () => this.toggleHand(), { signal });
    this.#button.addEventListener('click', () => this.toggleMenu(), { signal });
    call.addEventListener('reactions', (event) => {
      const { reactions } = /** @type {CustomEvent} */ (event).detail;
      for (const { peer, emoji } of reactions) show(peer, emoji);
      whisper(said(reactions, (peer) => this.#nameOf(peer)));
    }, { signal });
    call.addEventListener('left', () => stop.abort(), { once: true });
  }

  get #own() {
    return Boolean(this.#call.roster.find(({ peer }) => peer === this.#call.peer)?.handRaised);
  }

  toggleHand() {
    this.#call.moderation.raiseHand(!this.#own);
  }

  toggleMenu() {
    const phone = getComputedStyle(this.#hand).display === 'none';
    this.#menu.toggle(this.#button, 'Reactions', [
      ...EMOJIS.map((emoji) => ({ label: emoji, name: names[emoji], onSelect: () => this.#call.moderation.react(emoji) })),
      ...(phone ? [{ label: this.#own ? 'Lower hand' : 'Raise hand', onSelect: () => this.toggleHand() }] : []),
    ]);
  }

  /** After every change of the roster. */
  paint() {
    const label = this.#own ? 'Lower your hand' : 'Raise your hand';
    this.#hand.classList.toggle('active', this.#own);
    this.#button.classList.toggle('up', this.#own);
    this.#hand.setAttribute('aria-label', label);
    this.#hand.title = `${label} (H)`;
    const up = this.#up();
    const fresh = [...up].filter((peer) => !this.#raised.has(peer));
    if (fresh.length > 0) whisper(`${listed(fresh.map((peer) => this.#nameOf(peer)))} raised a hand.`);
    else if (this.#raised.has(this.#call.peer) && !up.has(this.#call.peer)) whisper('Your hand is down.');
    this.#raised = up;
  }

  #up() {
    return new Set(this.#call.roster.filter(({ handRaised }) => handRaised).map(({ peer }) => peer));
  }

  /** @param {string} peer */
  #nameOf(peer) {
    const entry = this.#call.roster.find((one) => one.peer === peer);
    return peer === this.#call.peer ? 'You' : entry?.name || entry?.identity || 'Somebody';
  }
}

/** @param {string[]} people */
function listed(people) {
  const more = people.length - MOST_NAMES;
  return more > 0 ? `${people.slice(0, MOST_NAMES).join(', ')} and ${more} more` : people.join(', ');
}

/**
 * For who hears it: who shows what, in one sentence each.
 * @param {{peer: string, emoji: string}[]} reactions
 * @param {(peer: string) => string} nameOf
 */
export function said(reactions, nameOf) {
  const kinds = [...new Set(reactions.map(({ emoji }) => emoji))];
  return kinds.map((kind) => {
    const people = reactions.filter(({ emoji }) => emoji === kind).map(({ peer }) => nameOf(peer));
    return `${listed(people)}: ${names[kind] ?? 'a reaction'}.`;
  }).join(' ');
}
