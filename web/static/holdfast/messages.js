// Direct messages between users, wherever they are connected.

import { checkIdentities, checkIdentity, checkLetter } from './arguments.js';
import { emit, on } from './emit.js';
import { CallError } from './errors.js';
import { randomId } from './random-id.js';

/** @typedef {import('./protocol.js').UserMessage} UserMessage */
/** @typedef {import('./protocol.js').MessageState} MessageState */
/** @typedef {'delivered' | 'offline' | 'gave_up'} Delivery */
/**
 * `kind`: what it is for; `ring` asks into a room, `answer` answers that, `app` is the application's own.
 * @typedef {{kind?: 'text' | 'ring' | 'answer' | 'app'}} SendOptions
 */
/**
 * What became of a message for each receiver.
 * @typedef {Map<string, Delivery | CallError>} Deliveries
 */
/**
 * A message for which not every receiver has an outcome yet.
 * @typedef {object} Letter
 * @property {import('./protocol.js').SendMessage} message to those who have not answered
 * @property {Deliveries} became
 * @property {(became: Deliveries) => void} resolve
 * @property {boolean} said whether it was ever sent
 * @property {ReturnType<typeof setTimeout>} limit
 */

/** How many receivers without an answer one sender may have; the server has the same limit. */
const WAITING_LIMIT = 64;
/** How long a message may be without an outcome. A server says what became of it within 23 s. */
const OUTCOME_MS = 60000;
/** How many receivers a message to several users has at first, and then in each second. The server takes no more. */
const AT_ONCE = 50;
const A_SECOND = 10;
const TRIES = 60;
/** The refusals that a slower pace helps against. */
const TOO_FAST = ['too_many_messages', 'too_many_waiting'];
/** The server takes 40 messages a second of a connection. */
const ACK_MS = 100;
/** How many streams one `received` may name; the server has the same limit. */
const ACK_LIMIT = 200;
/** How many streams of other senders are remembered; the oldest is forgotten first. Each load of a page has a stream of its own. */
const MARKS_LIMIT = 5000;

/**
 * Sends each message once, in order, also past the death of the signaling node, and says what became of it; drops what comes again.
 *
 * Events:
 * - `message` {from, name, kind, body, room?, at}: `body` is text, never markup, or what was sent
 * - `accepted` {to, seq}: the server keeps it and tries
 */
export class Messages extends /** @type {import('./events.js').TypedTarget<import('./events.js').MessagesEvents>} */ (EventTarget) {
  #send;
  #stream = randomId();
  #seq = 0;
  #open = false;
  /** @type {CallError | null} */
  #closed = null;
  /** @type {'room' | 'anywhere' | ''} */
  #scope = 'anywhere';
  /** @type {Map<number, Letter>} in the order of sending */
  #letters = new Map();
  /** @type {Map<string, import('./protocol.js').StreamMark>} */
  #marks = new Map();
  /** @type {Set<string>} */
  #unacknowledged = new Set();
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #ackTimer;

  /**
   * @param {(message: import('./protocol.js').ClientMessage) => boolean} send false when there is no connection
   * @internal
   */
  constructor(send) {
    super();
    this.#send = send;
  }

  /**
   * @param {import('./session.js').Session} session a call's
   * @internal
   */
  follow(session) {
    on(session, 'joined', ({ permissions }) => this.opened(permissions?.message ?? ''));
    on(session, 'resumed', () => this.opened(this.#scope));
    on(session, 'lost', () => this.lost());
    on(session, 'message', (message) => this.heard(message));
    on(session, 'refused', ({ message, error }) => message.type === 'message' && this.refused(message, error));
    on(session, 'ended', (error) => this.close(error));
  }

  /** Whom the token lets this client write to: `anywhere`, `room`, or '' for nobody. It is known once the first connection is open. */
  get scope() {
    return this.#scope;
  }

  /**
   * Resolves with what became of the message: `delivered` (a client of the user has it), `offline`, or `gave_up` (nobody answered within 20 s: it
   * may have arrived). Rejects with a CallError if it is refused, and with `unreachable` after a minute without a connection; it is not sent then.
   * @param {string} to an identity
   * @param {unknown} body text for `text`, else anything but null that JSON carries, 8 KiB at most
   * @param {SendOptions} [options]
   * @returns {Promise<Delivery>}
   */
  async send(to, body, options = {}) {
    checkIdentity(to);
    const became = /** @type {Delivery | CallError} */ ((await this.#post([to], body, options)).get(to));
    if (became instanceof CallError) throw became;
    return became;
  }

  /**
   * Sends one message to several users, at the pace that the server takes. Resolves with the outcome for each user: a delivery, or a CallError.
   * @param {Iterable<string>} users identities
   * @param {unknown} body
   * @param {SendOptions} [options]
   * @returns {Promise<Deliveries>}
   */
  async sendToEach(users, body, options = {}) {
    /** @type {Deliveries} */
    const became = new Map();
    let left = [...new Set(checkIdentities(users))];
    for (let tries = 1; left.length > 0; tries++) {
      const part = left.splice(0, tries === 1 ? AT_ONCE : A_SECOND);
      for (const [user, what] of await this.#post(part, body, options)) {
        if (what instanceof CallError && TOO_FAST.includes(what.code) && tries < TRIES) left.push(user);
        else became.set(user, what);
      }
      if (left.length > 0) await new Promise((resolve) => void setTimeout(resolve, 1000));
    }
    return became;
  }

  /**
   * @param {string[]} to
   * @param {unknown} body
   * @param {SendOptions} options
   * @returns {Promise<Deliveries>}
   */
  async #post(to, body, { kind = 'text' }) {
    /** @param {CallError} error */
    const refused = (error) => new Map(to.map((user) => [user, error]));
    try {
      checkLetter(kind, body);
    } catch (error) {
      return refused(/** @type {CallError} */ (error));
    }
    if (this.#closed) return refused(this.#closed);
    if (this.#scope === '') return refused(new CallError('not_messaged'));
    const waiting = [...this.#letters.values()].reduce((sum, { message }) => sum + message.to.length, 0);
    if (waiting + to.length > WAITING_LIMIT) return refused(new CallError('too_many_waiting', { retryable: true }));
    return new Promise((resolve) => {
      const seq = ++this.#seq;
      /** @type {import('./protocol.js').SendMessage} */
      const message = { type: 'message', to: [...to], kind, body, stream: this.#stream, seq };
      const limit = setTimeout(() => this.#giveUp(seq), OUTCOME_MS);
      this.#letters.set(seq, { message, became: new Map(), resolve, limit, said: this.#open && this.#send(message) });
    });
  }

  /**
   * Takes note of a new connection, and sends every unanswered message again before anything new.
   * @param {'room' | 'anywhere' | ''} scope of its token
   * @internal
   */
  opened(scope) {
    [this.#open, this.#scope, this.#closed] = [true, scope, null];
    if (scope === '') this.#refuse(new CallError('not_messaged'));
    for (const letter of this.#letters.values()) letter.said = this.#send(letter.message) || letter.said;
  }

  /** @internal */
  lost() {
    this.#open = false;
    clearTimeout(this.#ackTimer);
    this.#ackTimer = undefined;
    this.#unacknowledged.clear(); // The server repeats what was not acknowledged.
  }

  /**
   * @param {import('./protocol.js').ServerMessage} message
   * @internal
   */
  heard(message) {
    if (message.type === 'message') this.#take(message);
    if (message.type === 'message-state') this.#settle(message);
  }

  /**
   * @param {CallError} [reason]
   * @internal
   */
  close(reason = new CallError('left', { message: 'The connection was closed.' })) {
    this.lost();
    this.#closed = reason;
    this.#refuse(reason);
  }

  /**
   * Drops a message that the server refused as a whole.
   * @param {import('./protocol.js').SendMessage} message
   * @param {CallError} error
   * @internal
   */
  refused({ seq }, error) {
    this.#end(seq, error);
  }

  /** @param {CallError} error */
  #refuse(error) {
    for (const seq of [...this.#letters.keys()]) this.#end(seq, error);
  }

  /** @param {number} seq */
  #giveUp(seq) {
    this.#end(seq, this.#letters.get(seq)?.said ? 'gave_up' : new CallError('unreachable', { retryable: true }));
  }

  /**
   * Ends a message with one outcome for everybody who has none.
   * @param {number} seq
   * @param {Delivery | CallError} outcome
   */
  #end(seq, outcome) {
    const letter = this.#letters.get(seq);
    if (!letter) return;
    clearTimeout(letter.limit);
    this.#letters.delete(seq);
    for (const user of letter.message.to) letter.became.set(user, outcome);
    letter.resolve(letter.became);
  }

  /** @param {MessageState} state */
  #settle({ to, stream, seq, state, code, message }) {
    const letter = stream === this.#stream && this.#letters.get(seq);
    if (!letter || !letter.message.to.includes(to)) return;
    if (state === 'accepted') {
      emit(this, 'accepted', { to, seq });
      return;
    }
    letter.message.to = letter.message.to.filter((user) => user !== to);
    letter.became.set(to, state === 'refused' ? new CallError(code ?? 'internal', { message, retryable: code === 'too_many_messages' }) : state);
    if (letter.message.to.length === 0) this.#end(seq, 'delivered');
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
