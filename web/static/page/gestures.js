// One's own hand and reactions, and those of the others as they float over their tiles.

import { EMOJIS } from '../holdfast/index.js';
import { find } from './elements.js';
import { Menu } from './menu.js';
import { whisper } from './notices.js';
import { listed, name, say } from './words.js';

/** @typedef {import('../holdfast/call.js').Call} Call */

const names = /** @type {const} */ ({ '👍': 'thumbs', '👏': 'applause', '❤️': 'heart', '😂': 'laughter', '😮': 'surprise', '🎉': 'party' });
/** @param {string} emoji */
const meaning = (emoji) => say(`reaction.${names[/** @type {keyof typeof names} */ (emoji)] ?? /** @type {const} */ ('other')}`);
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
    this.#menu.toggle(this.#button, say('reactions'), EMOJIS.map((emoji) => ({ label: emoji, name: meaning(emoji), onSelect: () => this.#call.moderation.react(emoji) })));
  }

  /** After every change of the roster. */
  paint() {
    this.#hand.classList.toggle('active', this.#own);
    name(this.#hand, say(this.#own ? 'hand.lower' : 'hand.raise'), 'H');
    const up = this.#up();
    const fresh = [...up].filter((peer) => !this.#raised.has(peer));
    if (fresh.length > 0) whisper(say('hand.up', { names: some(fresh.map((peer) => this.#nameOf(peer))), count: fresh.length }));
    else if (this.#raised.has(this.#call.peer) && !up.has(this.#call.peer)) whisper(say('hand.down'));
    this.#raised = up;
  }

  #up() {
    return new Set(this.#call.roster.filter(({ handRaised }) => handRaised).map(({ peer }) => peer));
  }

  /** @param {string} peer */
  #nameOf(peer) {
    const entry = this.#call.roster.find((one) => one.peer === peer);
    return peer === this.#call.peer ? say('you') : entry?.name || entry?.identity || say('somebody');
  }
}

/**
 * The first few by name.
 * @param {string[]} people
 */
export function some(people) {
  const more = people.length - MOST_NAMES;
  return listed(more > 0 ? [...people.slice(0, MOST_NAMES), say('list.more', { count: more })] : people);
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
    return say('reaction.said', { names: some(people), reaction: meaning(kind) });
  }).join(' ');
}
