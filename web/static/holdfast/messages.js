// Direct messages between users, wherever they are connected.

import { emit, on } from './emit.js';
import { CallError } from './errors.js';

/** @typedef {import('./protocol.js').UserMessage} UserMessage */
/** @typedef {import('./protocol.js').MessageState} MessageState */
/** @typedef {'delivered' | 'offline' | 'gave_up'} Delivery */
/**
 * `kind`: what it is for; `ring` asks into a room, `answer` answers that, `app` is the application's own.
 * @typedef {{kind?: 'text' | 'ring' | 'answer' | 'app'}} SendOptions
 */
/**
 * A message without an answer.
 * @typedef {object} Letter
 * @property {import('./protocol.js').SendMessage} message to whom no answer came yet
 * @property {(delivery: Delivery) => void} resolve
 * @property {(error: CallError) => void} reject
 */

/** As the server's: what one sender may have without an answer. */
const WAITING_LIMIT = 64;
const BODY_BYTES = 8192;
/** The server takes 40 messages a second of a connection. */
const ACK_MS = 100;
/** As the server's, of one `received`. */
const ACK_LIMIT = 200;
/** Streams of others that are remembered, the oldest forgotten first: one for each life of a page. */
const MARKS_LIMIT = 5000;

/**
 * Sends each message once, in order, also past the death of the signaling node, and says what became of it; drops what comes again.
 *
 * Events:
 * - `message` {from, name, kind, body, room?, at}: `body` is text, never markup, or what was sent
 * - `accepted` {to, seq}: the server keeps it and tries
 */
export class Messages extends EventTarget {
  #send;
  #stream = crypto.randomUUID();
  #seq = 0;
  #open = false;
  #allowed = true;
  /** @type {Map<number, Letter>} in the order of sending */
  #letters = new Map();
  /** @type {Map<string, import('./protocol.js').StreamMark>} */
  #marks = new Map();
  /** @type {Set<string>} */
  #unacknowledged = new Set();
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #ackTimer;

  /** @param {(message: import('./protocol.js').ClientMessage) => boolean} send false when there is no connection */
  constructor(send) {
    super();
    this.#send = send;
  }

  /** @param {import('./session.js').Session} session a call's */
  follow(session) {
    on(session, 'joined', ({ permissions }) => this.opened(Boolean(permissions?.message)));
    on(session, 'resumed', () => this.opened(this.#allowed));
    on(session, 'lost', () => this.lost());
    on(session, 'message', (message) => this.heard(message));
    on(session, 'ended', (error) => this.close(error));
  }

  /**
   * Resolves with what became of the message: `delivered` (a client of the user has it), `offline`, or `gave_up` (nobody answered within 20 s: it
   * may have arrived). Rejects with a CallError if it is refused. Waits for a connection.
   * @param {string} to an identity
   * @param {unknown} body text for `text`, else anything that JSON carries, 8 KiB at most
   * @param {SendOptions} options
   * @returns {Promise<Delivery>}
   */
  async send(to, body, { kind = 'text' } = {}) {
    if (!this.#allowed) throw new CallError('not_messaged');
    if (new TextEncoder().encode(JSON.stringify(body)).length > BODY_BYTES) throw new CallError('message_too_long');
    if (this.#letters.size >= WAITING_LIMIT) throw new CallError('too_many_waiting', { retryable: true });
    return new Promise((resolve, reject) => {
      const seq = ++this.#seq;
      /** @type {import('./protocol.js').SendMessage} */
      const message = { type: 'message', to: [to], kind, body, stream: this.#stream, seq };
      this.#letters.set(seq, { message, resolve, reject });
      if (this.#open) this.#send(message);
    });
  }

  /**
   * A connection is open: what has no answer is said again, before anything new.
   * @param {boolean} allowed by its token
   */
  opened(allowed) {
    [this.#open, this.#allowed] = [true, allowed];
    if (!allowed) this.#refuse(new CallError('not_messaged'));
    for (const { message } of this.#letters.values()) this.#send(message);
  }

  lost() {
    this.#open = false;
    clearTimeout(this.#ackTimer);
    this.#ackTimer = undefined;
    this.#unacknowledged.clear(); // The server repeats what was not acknowledged.
  }

  /** @param {import('./protocol.js').ServerMessage} message */
  heard(message) {
    if (message.type === 'message') this.#take(message);
    if (message.type === 'message-state') this.#settle(message);
  }

  /** @param {CallError} [reason] */
  close(reason = new CallError('left', { message: 'The connection was closed.' })) {
    this.lost();
    this.#refuse(reason);
  }

  /** @param {CallError} error */
  #refuse(error) {
    const letters = [...this.#letters.values()];
    this.#letters.clear();
    for (const { reject } of letters) reject(error);
  }

  /** @param {MessageState} state */
  #settle({ to, stream, seq, state, code, message }) {
    const letter = stream === this.#stream && this.#letters.get(seq);
    if (!letter) return;
    if (state === 'accepted') {
      emit(this, 'accepted', { to, seq });
      return;
    }
    this.#letters.delete(seq);
    if (state === 'refused') letter.reject(new CallError(code ?? 'internal', { message, retryable: code === 'too_many_messages' }));
    else letter.resolve(state);
  }

  /** @param {UserMessage} message */
  #take({ from, name, kind, body, stream, seq, room, at }) {
    const key = JSON.stringify([from, stream]);
    const before = this.#marks.get(key)?.seq ?? 0;
    this.#marks.delete(key); // The newest stand last.
    this.#marks.set(key, { from, stream, seq: Math.max(before, seq) });
    if (this.#marks.size > MARKS_LIMIT) this.#marks.delete(/** @type {string} */ (this.#marks.keys().next().value));
    this.#unacknowledged.add(key);
    this.#ackTimer ??= setTimeout(() => this.#acknowledge(), ACK_MS);
    if (seq > before) emit(this, 'message', { from, name, kind, body, room, at });
  }

  #acknowledge() {
    this.#ackTimer = undefined;
    const keys = [...this.#unacknowledged].slice(0, ACK_LIMIT);
    const upTo = keys.flatMap((key) => this.#marks.get(key) ?? []);
    if (!this.#open || upTo.length === 0 || !this.#send({ type: 'received', upTo })) return;
    for (const key of keys) this.#unacknowledged.delete(key);
    if (this.#unacknowledged.size > 0) this.#ackTimer = setTimeout(() => this.#acknowledge(), ACK_MS);
  }
}
