// Tells a person without a key that the call may be encrypted, and what to do.

import { some } from './gestures.js';
import { notice } from './notices.js';
import { decodes } from './problem.js';
import { say } from './words.js';

/** How many looks in a row must find the same. A picture may wait for its first keyframe, and sound may be lost, for one of them. */
const LOOKS = 2;

export class Keyless {
  #looks = 0;
  #text = '';
  #withdraw = () => {};

  /**
   * Takes note of one look at what arrives.
   * @param {Map<string, string>} undecoded peers of whose pictures nothing is decoded, with their codec
   * @param {Set<string>} unheard peers of whose sound nothing is played
   * @param {(peer: string) => string} nameOf
   */
  look(undecoded, unheard, nameOf) {
    const peers = new Set([...unheard, ...[...undecoded].filter(([, codec]) => codec === '' || decodes(codec)).map(([peer]) => peer)]);
    this.#looks = peers.size === 0 ? 0 : this.#looks + 1;
    const text = this.#looks < LOOKS ? '' : say('keyless', { names: some([...peers].map(nameOf)) });
    if (text === this.#text) return;
    this.#text = text;
    this.#withdraw();
    this.#withdraw = text === '' ? () => {} : notice(text, { forMs: 0 });
  }
}
