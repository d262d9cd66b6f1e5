// Rings: who is asked into a room, and by whom one is. The page's state, without a picture of it.

import { emit } from '../holdfast/emit.js';
import { randomId } from '../holdfast/random-id.js';

/** @typedef {import('../holdfast/messages.js').Messages} Messages */
/** @typedef {'calling' | 'ringing' | 'accepted' | 'declined' | 'needs_link' | 'unanswered' | 'offline' | 'unreached'} RingState */
/** @typedef {{id: string, to: string, name: string, room: string, state: RingState}} Outgoing */
/** @typedef {{id: string, from: string, name: string, room: string, at: number}} Incoming */

/** How long one rings. */
export const RING_MS = 45_000;
/** Longer at the other side: the end of a ring is told by who rings, unless that page is gone. */
export const RUNG_MS = RING_MS + 10_000;
/** A page that is loaded anew has forgotten who rings, and another device may come: a ring is said again until it ends. */
const AGAIN_MS = 3000;
/** A ring that ends while the other page is being loaded is told for half a minute more. */
const LATE_TRIES = 10;
const ID_LIMIT = 64;
const ROOM_LIMIT = 128;
/** How many rings may ring here at once; further rings are dropped. */
const INCOMING_LIMIT = 8;
const PAST_LIMIT = 100;

/**
 * Events:
 * - `outgoing` {ring}: one that we send is new or in another state
 * - `incoming`: another one is first of `incoming`, or none
 * - `missed` {ring}: it ended without an answer of any device
 */
export class Ringing extends EventTarget {
  /** @type {Messages | null} */
  #messages = null;
  #followed = new WeakSet();
  /** @type {Map<string, Outgoing>} */
  #outgoing = new Map();
  /** @type {Map<string, Incoming>} */
  #incoming = new Map();
  /** @type {Map<string, ReturnType<typeof setTimeout>>} */
  #timers = new Map();
  /** Answered or ended ones: a ring that is said again on another connection rings once. */
  #past = new Set();
  /** @type {(() => void)[]} said again on the next connection */
  #unsent = [];
  #againMs;

  /** @param {{againMs?: number}} options `againMs`: for tests */
  constructor({ againMs = AGAIN_MS } = {}) {
    super();
    this.#againMs = againMs;
  }

  /** The rings that wait for an answer here, the oldest first. */
  get incoming() {
    return [...this.#incoming.values()];
  }

  /**
   * Sends on this connection from now on, and goes on listening to the earlier connections.
   * @param {Messages} messages
   */
  follow(messages) {
    this.#messages = messages;
    if (!this.#followed.has(messages)) messages.addEventListener('message', (event) => this.#heard(/** @type {CustomEvent} */ (event).detail));
    this.#followed.add(messages);
    for (const again of this.#unsent.splice(0)) again();
  }

  /**
   * Asks a user into a room. Does nothing while this page rings that user already.
   * @param {string} to an identity
   * @param {string} name
   * @param {string} room
   */
  ring(to, name, room) {
    if ([...this.#outgoing.values()].some((one) => one.to === to)) return; // It rings there already.
    const id = randomId();
    this.#outgoing.set(id, { id, to, name, room, state: 'calling' });
    this.#become(id, 'calling');
    this.#timers.set(id, setTimeout(() => this.#finish(id, 'unanswered', 'stopped'), RING_MS));
    this.#say(to, 'ring', { id, room }, (delivery) => {
      if (delivery !== 'delivered') {
        this.#finish(id, delivery === 'offline' ? 'offline' : 'unreached');
        return;
      }
      this.#become(id, 'ringing');
      this.#repeat(id);
    });
  }

  /**
   * Sends a ring again after each answer to the last sending, so that only one is under way and a user who is away for a moment still hears it.
   * @param {string} id
   */
  #repeat(id) {
    setTimeout(() => {
      const ring = this.#outgoing.get(id);
      if (ring) this.#say(ring.to, 'ring', { id, room: ring.room }, () => this.#repeat(id));
    }, this.#againMs);
  }

  /** @param {string} id */
  stop(id) {
    this.#finish(id, 'unanswered', 'stopped');
  }

  stopAll() {
    for (const id of [...this.#outgoing.keys()]) this.stop(id);
  }

  /**
   * @param {string} id
   * @param {boolean} accepted
   * @param {'needs_link'} [reason] why not, if that was not the person's wish
   */
  answer(id, accepted, reason) {
    const ring = this.#incoming.get(id);
    if (!ring) return;
    this.#say(ring.from, 'answer', { id, accepted, ...(reason && { reason }) });
    this.#drop(id);
  }

  /** @param {{from: string, name: string, kind: string, body: any, at: number}} message */
  #heard({ from, name, kind, body, at }) {
    if (body === null || typeof body !== 'object' || typeof body.id !== 'string' || body.id === '' || body.id.length > ID_LIMIT) return;
    if (kind === 'answer') this.#answered(from, body);
    if (kind !== 'ring') return;
    const { id, room, over } = body;
    const known = this.#incoming.get(id);
    if (this.#past.has(id) || (known && known.from !== from)) return;
    const named = typeof room === 'string' && room !== '' && room.length <= ROOM_LIMIT;
    const ring = { id, from, name: name || from, room, at };
    if (over !== undefined) {
      if (!known && !named) return;
      this.#drop(id);
      if (over !== 'answered') emit(this, 'missed', { ring: known ?? ring });
    } else if (!known && named && this.#incoming.size < INCOMING_LIMIT) {
      this.#incoming.set(id, ring);
      this.#timers.set(id, setTimeout(() => this.#missed(id), RUNG_MS));
      emit(this, 'incoming', {});
    }
  }

  /** @param {string} id */
  #missed(id) {
    const ring = this.#incoming.get(id);
    this.#drop(id);
    if (ring) emit(this, 'missed', { ring });
  }

  /**
   * @param {string} from
   * @param {{id: string, accepted?: unknown, reason?: unknown}} body
   */
  #answered(from, { id, accepted, reason }) {
    if (this.#outgoing.get(id)?.to !== from) return;
    const refusal = reason === 'needs_link' ? 'needs_link' : 'declined';
    this.#finish(id, accepted === true ? 'accepted' : refusal, 'answered');
  }

  /**
   * @param {string} id
   * @param {RingState} state
   * @param {'answered' | 'stopped'} [over] tells every device that rings
   */
  #finish(id, state, over) {
    const ring = this.#outgoing.get(id);
    if (!ring) return;
    if (over) this.#end(ring, over, LATE_TRIES);
    this.#become(id, state);
    this.#outgoing.delete(id);
    this.#clear(id);
  }

  /**
   * Tells the other side that a ring is over. The room is named for a stopped ring, so that a page that never heard it learns what it missed.
   * @param {Outgoing} ring
   * @param {'answered' | 'stopped'} over
   * @param {number} tries
   */
  #end(ring, over, tries) {
    const { id, to, room } = ring;
    this.#say(to, 'ring', { id, over, ...(over === 'stopped' && { room }) }, (delivery) => {
      if (over === 'stopped' && delivery !== 'delivered' && tries > 1) setTimeout(() => this.#end(ring, over, tries - 1), this.#againMs);
    });
  }

  /**
   * @param {string} id
   * @param {RingState} state
   */
  #become(id, state) {
    const ring = this.#outgoing.get(id);
    if (!ring) return;
    ring.state = state;
    emit(this, 'outgoing', { ring: { ...ring } });
  }

  /** @param {string} id */
  #drop(id) {
    this.#incoming.delete(id);
    this.#past.add(id);
    if (this.#past.size > PAST_LIMIT) this.#past.delete(this.#past.values().next().value);
    this.#clear(id);
    emit(this, 'incoming', {});
  }

  /** @param {string} id */
  #clear(id) {
    clearTimeout(this.#timers.get(id));
    this.#timers.delete(id);
  }

  /**
   * Sends a message. When the connection closes before the server has the message, the next connection sends it.
   * @param {string} to
   * @param {'ring' | 'answer'} kind
   * @param {object} body
   * @param {(delivery: import('../holdfast/messages.js').Delivery) => void} [became]
   */
  #say(to, kind, body, became = () => {}) {
    const messages = this.#messages;
    const again = () => this.#say(to, kind, body, became);
    messages?.send(to, body, { kind }).then(became, ({ code }) => {
      if (code !== 'left') became('gave_up');
      else if (messages !== this.#messages) again();
      else this.#unsent.push(again);
    });
  }
}
