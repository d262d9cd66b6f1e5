// The room's door, for a moderator: how many people may be in the room, who waits, and who of those may enter.

import { checkDoor, checkIdentity } from './arguments.js';
import { emit, on } from './emit.js';
import { CallError } from './errors.js';

/** @typedef {import('./protocol.js').ClientMessage} ClientMessage */

/** Event of the call: `door` {door}, the server's answer to all that is said and asked here. Nobody is told of the door unasked. */
export class Door {
  #call;
  #around;
  #allowed;
  /** @type {import('./protocol.js').Door | null} */
  #latest = null;
  #asking = false;

  /**
   * @param {import('./call.js').Call} call
   * @param {Pick<import('./moderation.js').Surroundings, 'send' | 'sendOrKeep'>} around
   * @param {() => boolean} allowed whether one runs the room
   * @internal
   */
  constructor(call, around, allowed) {
    this.#call = call;
    this.#around = around;
    this.#allowed = allowed;
  }

  /**
   * @param {import('./session.js').Session} session
   * @internal
   */
  follow(session) {
    on(session, 'message', (message) => {
      if (message.type !== 'door') return;
      this.#asking = false;
      this.#latest = message;
      emit(this.#call, 'door', { door: message });
    });
    // The error of a question is hidden while the store is away, because a later question may be answered.
    session.addEventListener('error', (event) => {
      if (this.#asking && /** @type {CustomEvent} */ (event).detail.code === 'store_unavailable') event.stopImmediatePropagation();
      this.#asking = false;
    });
    on(session, 'lost', () => (this.#asking = false));
  }

  /** As last heard: `{cap?, closed, inside, length, line: [{identity, name?, since?}]}`. Null before, and for who does not run the room. */
  get latest() {
    return this.#allowed() ? this.#latest : null;
  }

  /** Asks the server for the door, unless a question is unanswered or the session is not open. No `error` tells that the store is away. */
  ask() {
    if (this.#allowed() && !this.#asking) this.#asking = this.#around.send({ type: 'door' }) === true;
  }

  /**
   * Changes the number of places, or closes or opens the room. A setting that is left out stays as it is.
   * @param {{cap?: number, closed?: boolean}} change `cap` -1: any number of people. A closed room is entered by whom one lets in
   */
  set({ cap, closed }) {
    checkDoor(cap, closed);
    this.#act({ type: 'door', ...(cap !== undefined && { cap }), ...(closed !== undefined && { closed }) });
  }

  /**
   * Lets a waiting user in before all others, as soon as there is a place.
   * @param {string} identity
   */
  letIn(identity) {
    checkIdentity(identity);
    this.#act({ type: 'let-in', identity });
  }

  /** @param {string} identity */
  turnAway(identity) {
    checkIdentity(identity);
    this.#act({ type: 'turn-away', identity });
  }

  /** @param {ClientMessage} message */
  #act(message) {
    if (!this.#allowed()) {
      emit(this.#call, 'error', new CallError('not_moderator'));
      return;
    }
    this.#asking = false; // An error is of the deed.
    this.#around.sendOrKeep(message);
  }
}
