// The users whose presence an application watches, and the last known presence of each.

import { emit, on } from './emit.js';
import { CallError } from './errors.js';

/** @typedef {import('./protocol.js').UserPresence} UserPresence */

/** The most users in one list; the server has the same limit. */
export const WATCH_LIMIT = 500;
/** The least time between two lists, because the server takes one list a second from each identity. */
const PAUSE_MS = 1000;
/** A list that has no answer after this time was refused or lost, and is sent again. Up to half as much is added at random, to spread the
 * lists of one user's many tabs. */
const ANSWER_MS = 5000;
/** After this long without a connection every watched user becomes `unknown`. It is the TTL of a lease. */
const STALE_MS = 15000;

/** Emits `presence` {changes} and the error `not_watched` at its owner. */
export class WatchList {
  #owner;
  #send;
  /** @type {Map<string, UserPresence>} */
  #known = new Map();
  /**
   * The users for whom no answer has come since the list was sent.
   * @type {Set<string>}
   */
  #unheard = new Set();
  #open = false;
  #allowed = false;
  #said = true;
  /** Whether the server refused the present list for good. */
  #refused = false;
  #saidAt = -Infinity;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #sayTimer;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #staleTimer;

  /**
   * @param {EventTarget} owner
   * @param {(message: import('./protocol.js').Watch) => boolean} send false when there is no connection
   */
  constructor(owner, send) {
    this.#owner = owner;
    this.#send = send;
  }

  /** @param {import('./session.js').Session} session a call's */
  follow(session) {
    on(session, 'joined', ({ permissions }) => this.opened(permissions?.watch === true));
    on(session, 'resumed', () => this.opened(this.#allowed));
    on(session, 'lost', () => this.lost());
    on(session, 'message', (message) => message.type === 'presence' && this.heard(message.users));
    on(session, 'refused', ({ message, error }) => message.type === 'watch' && this.refused(error));
  }

  /** The presence of every watched user, in the order of the list; `unknown` until an answer has come. */
  get users() {
    return [...this.#known.values()].map((status) => ({ ...status }));
  }

  /**
   * Replaces the list. It is sent as soon as it may be, and again on every new connection. Throws a CallError for too many.
   * @param {Iterable<string>} users
   */
  set(users) {
    const list = new Set(users);
    if (list.size > WATCH_LIMIT) throw new CallError('too_many_watched');
    if (list.size === this.#known.size && [...list].every((user) => this.#known.has(user))) return;
    this.#refused = false;
    this.#known = new Map([...list].map((user) => [user, this.#known.get(user) ?? { user, state: 'unknown' }]));
    this.#say();
  }

  /**
   * Takes note of a new connection, and sends it the list.
   * @param {boolean} allowed by its token
   */
  opened(allowed) {
    clearTimeout(this.#staleTimer);
    [this.#open, this.#allowed] = [true, allowed];
    this.#saidAt = -Infinity;
    if (this.#known.size > 0) this.#say();
  }

  /**
   * Sends a list no more that the server refused for good.
   * @param {CallError} error
   */
  refused(error) {
    if (error.retryable) return;
    this.#refused = true;
    clearTimeout(this.#sayTimer);
  }

  lost() {
    if (!this.#open) return;
    this.#open = false;
    clearTimeout(this.#sayTimer);
    this.#staleTimer = setTimeout(() => this.#take(this.users.map(({ user }) => ({ user, state: 'unknown' }))), STALE_MS);
  }

  /** @param {UserPresence[]} users */
  heard(users) {
    for (const { user } of users) this.#unheard.delete(user);
    if (this.#said && this.#unheard.size === 0) clearTimeout(this.#sayTimer);
    this.#take(users);
  }

  close() {
    this.#open = false;
    clearTimeout(this.#sayTimer);
    clearTimeout(this.#staleTimer);
  }

  /** @param {UserPresence[]} users */
  #take(users) {
    const changes = users.filter((status) => {
      const before = this.#known.get(status.user); // None of who is watched no longer.
      return before && (before.state !== status.state || before.since !== status.since || before.lastSeen !== status.lastSeen);
    });
    for (const status of changes) this.#known.set(status.user, status);
    if (changes.length > 0) emit(this.#owner, 'presence', { changes: changes.map((status) => ({ ...status })) });
  }

  #say() {
    clearTimeout(this.#sayTimer);
    if (!this.#open || this.#refused) return;
    if (!this.#allowed) {
      if (this.#known.size > 0) emit(this.#owner, 'error', new CallError('not_watched'));
      return;
    }
    this.#said = false;
    const early = this.#saidAt + PAUSE_MS - performance.now();
    if (early > 0) {
      this.#sayTimer = setTimeout(() => this.#say(), early);
      return;
    }
    const users = [...this.#known.keys()];
    if (!this.#send({ type: 'watch', users })) return;
    this.#said = true;
    this.#saidAt = performance.now();
    this.#unheard = new Set(users);
    if (users.length > 0) this.#sayTimer = setTimeout(() => this.#say(), ANSWER_MS * (1 + Math.random() / 2));
  }
}
