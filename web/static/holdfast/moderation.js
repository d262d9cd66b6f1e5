// Raised hands and reactions, and the acts of a moderator.

import { checkAct, checkBoolean, checkEmoji } from './arguments.js';
import { Door } from './door.js';
import { emit, on } from './emit.js';
import { CallError } from './errors.js';

/** @typedef {import('./protocol.js').Source} Source */
/** @typedef {import('./protocol.js').Act} Act */
/**
 * @typedef {object} Surroundings
 * @property {(message: import('./protocol.js').ClientMessage) => boolean | undefined} send
 * @property {(message: import('./protocol.js').ClientMessage) => void} sendOrKeep now, or when the socket is back
 * @property {(source: Source) => void} mute one's own source
 * @property {(source: Source) => boolean} isMuted
 * @property {() => import('./protocol.js').Joined | null} me
 */

/**
 * Events of the call:
 * - `reactions` {reactions: [{peer, emoji}]}: of one moment, one's own too
 * - `muted-by` {source, by}: somebody who runs the room turned this source off; `by` may be empty. One may unmute
 * - `unmute-asked` {source, by}
 * - `permissions` {permissions}: one runs the room now, or no longer
 * - `door` {door}: see Door
 */
export class Moderation {
  #call;
  #around;

  /**
   * @param {import('./call.js').Call} call
   * @param {Surroundings} around
   * @internal
   */
  constructor(call, around) {
    this.#call = call;
    this.#around = around;
    this.door = new Door(call, around, () => this.allowed);
  }

  /**
   * @param {import('./session.js').Session} session
   * @internal
   */
  follow(session) {
    on(session, 'message', (message) => this.#hear(message));
    this.door.follow(session);
    on(session, 'resumed', ({ silenced = [] }) => {
      for (const source of silenced) this.#silence(source);
    });
  }

  /** Whether this client's permissions let it moderate the room. */
  get allowed() {
    return this.#around.me()?.permissions?.moderate === true;
  }

  /**
   * Asks the server for a moderator's act: `mute`, `ask-unmute`, `lower-hand`, `remove`, `grant`, `give-up` or `end-call`. `mute` and `lower-hand` mean
   * everybody else when no peer is named. An `error` event, whose `about` is `moderate`, tells what cannot be done.
   * @param {Act} act
   * @param {string} [peer]
   * @param {Source} [source] of `mute` and `ask-unmute`
   */
  act(act, peer, source = 'microphone') {
    checkAct(act, peer, source);
    if (!this.allowed) {
      emit(this.#call, 'error', new CallError('not_moderator'));
      return;
    }
    this.#around.sendOrKeep({ type: 'moderate', act, ...(peer && { peer }), ...((act === 'mute' || act === 'ask-unmute') && { source }) });
  }

  /**
   * Raises or lowers one's own hand. The roster shows it as `handRaised` once the server has told it to everybody.
   * @param {boolean} raised
   */
  raiseHand(raised) {
    checkBoolean('raised', raised);
    this.#around.sendOrKeep({ type: 'hand', raised });
  }

  /**
   * Sends a reaction. The event `reactions` shows it once the server has told it to everybody.
   * @param {typeof import('./emojis.js').EMOJIS[number]} emoji
   */
  react(emoji) {
    checkEmoji(emoji);
    this.#around.send({ type: 'reaction', emoji });
  }

  /** @param {import('./protocol.js').ServerMessage} message */
  #hear(message) {
    switch (message.type) {
      case 'muted-by':
        this.#silence(message.source, message.by);
        break;
      case 'unmute-asked':
        if (this.#around.isMuted(message.source)) emit(this.#call, 'unmute-asked', { source: message.source, by: message.by ?? '' });
        break;
      case 'reactions':
        emit(this.#call, 'reactions', { reactions: message.reactions });
        break;
      case 'permissions': {
        const me = this.#around.me();
        if (me) me.permissions = message.permissions;
        emit(this.#call, 'permissions', { permissions: message.permissions });
        break;
      }
      default:
    }
  }

  /**
   * @param {Source} source
   * @param {string} [by]
   */
  #silence(source, by = '') {
    const wasOn = !this.#around.isMuted(source);
    this.#around.mute(source);
    if (wasOn) emit(this.#call, 'muted-by', { source, by });
  }
}
