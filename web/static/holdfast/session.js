// One person's session: joined once, resumed on any signaling node, joined anew only when it cannot be resumed.

import { leadsNowhere, nowhere } from './address.js';
import { checkToken } from './arguments.js';
import { emit } from './emit.js';
import { CallError } from './errors.js';
import { withoutScreenAudio } from './screen-audio.js';
import { Socket } from './socket.js';

/** @typedef {import('./protocol.js').ClientMessage} ClientMessage */
/** @typedef {import('./protocol.js').ServerMessage} ServerMessage */
/** @typedef {import('./call-options.js').TokenSource} TokenSource */
/** @typedef {{url: string, token: TokenSource, room?: string, name?: string, wait?: boolean, joinLimitMs?: number, WebSocket?: import('./call-options.js').SocketMaker}} SessionOptions */

/** How long the first join may take, not counting time in which the cluster's store is away. */
const JOIN_LIMIT_MS = 15000;
/** A server closes the socket of a stranger who sends more than 64 KiB at once. */
const AHEAD_BYTES = 60_000;
/** How many messages are kept while the session is not open. When there are more, the oldest is dropped. */
const KEPT_LIMIT = 16;

/**
 * Events: `joined`, `resumed`, `waiting` (a place in line), `message` (any other, of a present epoch), `lost`, `refused` ({message, error}: the
 * server did not do what this message of the client asks; `error` follows), `error` (CallError: the session goes on), `ended` (CallError), `asked` (the
 * first join was sent on a socket, and an offer may follow), `ahead-refused` (that offer came to a client in line: it is sent once the client is in).
 */
export class Session extends EventTarget {
  /** @type {'idle' | 'joining' | 'open' | 'lost' | 'ended'} */
  #state = 'idle';
  #options;
  #socket;
  #openings = 0;
  #attempt = 0;
  #resume = '';
  #epoch = 0;
  #screenAudio = false;
  #token = '';
  #rejoining = false;
  /** The token with which this client got its place in the room's waiting list; empty when it is not waiting. */
  #inLineBy = '';
  /** @type {() => {epoch: number, seq: number}} */
  #cursor;
  /** @type {ClientMessage[]} */
  #kept = [];
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #joinTimer;
  /** @type {CallError | null} */
  #lastError = null;
  /** Whether a join of this client waits for its answer on the present socket. */
  #asked = false;

  /**
   * @param {SessionOptions} options
   * @param {() => {epoch: number, seq: number}} cursor the last roster event seen
   */
  constructor(options, cursor) {
    super();
    this.#options = options;
    this.#cursor = cursor;
    this.#socket = new Socket(options.url, options.WebSocket);
    this.#socket.addEventListener('trying', () => this.#onTrying());
    this.#socket.addEventListener('open', () => this.#onOpen());
    this.#socket.addEventListener('failed', () => this.#onFailed(), { once: true });
    this.#socket.addEventListener('lost', () => this.#onLost());
    this.#socket.addEventListener('message', (event) => this.#onMessage(/** @type {CustomEvent} */ (event).detail));
  }

  get isOpen() {
    return this.#state === 'open';
  }

  /**
   * Resolves at once when the session is open, otherwise after the next join or resume. Rejects when the signal is aborted.
   * @param {AbortSignal} signal
   * @returns {Promise<void>}
   */
  opened(signal) {
    if (this.isOpen) return Promise.resolve();
    return new Promise((resolve, reject) => {
      for (const type of ['joined', 'resumed']) this.addEventListener(type, () => resolve(), { once: true, signal });
      signal.addEventListener('abort', () => reject(signal.reason), { once: true });
    });
  }

  get epoch() {
    return this.#epoch;
  }

  /** Whether this server and the room's media node know the source `screen-audio`. */
  get screenAudio() {
    return this.#screenAudio;
  }

  /** Begins to join. The event `joined`, or `ended`, tells the outcome. */
  start() {
    this.#state = 'joining';
    this.#limitJoin();
    this.#socket.open();
  }

  #limitJoin() {
    this.#endLimit();
    this.#joinTimer = setTimeout(() => {
      this.#end(this.#lastError ?? new CallError('unreachable', { retryable: true }));
    }, this.#options.joinLimitMs ?? JOIN_LIMIT_MS);
  }

  #endLimit() {
    clearTimeout(this.#joinTimer);
    this.#joinTimer = undefined;
  }

  /** Starts the join limit of a waiting client with its first try to reconnect, because a hidden tab may be late for that try. */
  #onTrying() {
    this.#asked = false;
    if (this.#inLineBy !== '' && this.#joinTimer === undefined) this.#limitJoin();
  }

  /**
   * @param {ClientMessage} message
   * @returns {boolean} false when the session is not open; then nothing was sent
   */
  send(message) {
    const said = this.#screenAudio ? message : withoutScreenAudio(message);
    return this.isOpen && (said === null || this.#socket.send(said, message));
  }

  /**
   * Sends an offer behind the join that waits for its answer, so that its own answer needs no round trip more. The server reads it once the
   * client is in the room, and never if it is refused.
   * @param {import('./protocol.js').Offer} offer
   * @returns {boolean} false when no join waits, or the offer is too large for a stranger
   */
  sendAhead(offer) {
    const waits = this.#asked && this.#state === 'joining' && this.#inLineBy === '';
    return waits && JSON.stringify(offer).length < AHEAD_BYTES && this.#socket.send(offer);
  }

  /**
   * Sends a message now, or keeps it until the session is open again. A rejoin drops what was kept.
   * @param {ClientMessage} message
   */
  sendOrKeep(message) {
    if (this.send(message)) return;
    this.#kept.push(message);
    if (this.#kept.length > KEPT_LIMIT) this.#kept.shift();
  }

  /** @param {boolean} back whether the page may come again at once: then a place in a full room is kept for a moment */
  leave(back) {
    if (this.#inLineBy === '') this.send({ type: 'leave', ...(back ? { back } : {}) });
    else if (!back) this.#socket.send({ type: 'leave' });
    this.#close();
  }

  async #onOpen() {
    if (this.#resume !== '') {
      const { epoch, seq } = this.#cursor();
      this.#attempt++;
      this.#socket.send({ type: 'resume', resume: this.#resume, attempt: this.#attempt, epoch, seq, rosterChanges: true, places: true });
      return;
    }
    const { token, room, name, wait } = this.#options;
    let text = this.#inLineBy; // Another identity would be another place.
    const opening = ++this.#openings;
    try {
      text ||= typeof token === 'function' ? await token() : token;
      checkToken(text, false);
    } catch (cause) {
      if (opening !== this.#openings || this.#state === 'ended') return;
      if (cause instanceof CallError && cause.code === 'bad_token') {
        this.#end(cause);
        return;
      }
      this.#lastError = new CallError('no_token', { cause, retryable: true });
      if (this.#state === 'lost') emit(this, 'error', this.#lastError);
      this.#socket.again();
      return;
    }
    if (opening !== this.#openings || this.#state === 'ended') return; // Another socket has opened meanwhile, and has asked.
    this.#attempt = 1;
    this.#token = text;
    this.#socket.send({ type: 'join', token: text, rosterChanges: true, places: true, ...(room ? { room } : {}), ...(name ? { name } : {}), ...(wait ? { wait } : {}) });
    this.#asked = true;
    if (this.#state === 'joining') emit(this, 'asked');
  }

  /** A browser does not tell why a socket did not open. A wrong path of the address is found at the first try, because no later try can help. */
  async #onFailed() {
    const { url } = this.#options;
    if (this.#state === 'joining' && (await leadsNowhere(url)) && this.#state === 'joining') this.#end(nowhere(url));
  }

  #onLost() {
    if (this.#state !== 'open') return;
    this.#state = 'lost';
    emit(this, 'lost');
  }

  /** @param {ServerMessage} message */
  #onMessage(message) {
    if ('epoch' in message && message.type !== 'joined') {
      if (message.epoch < this.#epoch) return;
      this.#epoch = message.epoch;
    }
    if (message.type === 'joined' || message.type === 'resumed' || message.type === 'restart') this.#screenAudio = message.screenAudio === true;
    switch (message.type) {
      case 'joined':
        this.#epoch = message.epoch;
        this.#settled(message.resume);
        emit(this, 'joined', message);
        this.#rejoining = false;
        this.#flush();
        break;
      case 'resumed':
        this.#settled(message.resume);
        emit(this, 'resumed', message);
        this.#flush();
        break;
      case 'waiting':
        this.#endLimit();
        this.#inLineBy = this.#token;
        this.#socket.settle();
        emit(this, 'waiting', message);
        break;
      case 'error':
        this.#onError(message);
        break;
      case 'bye':
        if (message.code === 'resume_expired') this.#rejoin();
        else this.#end(CallError.of(message));
        break;
      case 'permissions':
        this.#resume = message.resume;
        emit(this, 'message', message);
        break;
      default:
        emit(this, 'message', message);
    }
  }

  /** @param {string} resume */
  #settled(resume) {
    this.#endLimit();
    this.#inLineBy = '';
    this.#resume = resume;
    this.#state = 'open';
    this.#lastError = null;
    this.#socket.settle();
  }

  #flush() {
    for (const message of this.#kept.splice(0)) this.send(message);
  }

  /** @param {import('./protocol.js').ServerError} message */
  #onError(message) {
    const refused = this.#socket.refused(message);
    const error = CallError.of(message, refused?.type);
    if (this.#state === 'open') {
      if (refused) emit(this, 'refused', { message: refused, error });
      // While the session is open, an error belongs to one message and does not end the session, except `superseded`.
      if (message.code === 'superseded') this.#end(error);
      else emit(this, 'error', error);
      return;
    }
    if (refused?.type === 'offer') {
      emit(this, 'ahead-refused');
      return;
    }
    // While the session is not open, any other error is the answer to a join or a resume.
    this.#lastError = error;
    if (message.code === 'resume_expired') this.#rejoin();
    else if (message.code === 'token_expired' && this.#inLineBy !== '' && typeof this.#options.token === 'function') {
      this.#inLineBy = '';
      this.#socket.again();
    } else if (message.retryable) {
      // While the store is away the join limit begins again, so that the client gets in once the store is back, however long that takes.
      if (message.code === 'store_unavailable' && this.#state === 'joining') this.#limitJoin();
      emit(this, 'error', error);
      this.#socket.again(message.retryAfterMs);
    } else this.#end(error);
  }

  /** Joins anew, because the server no longer has the session. */
  #rejoin() {
    if (this.#rejoining) return;
    this.#rejoining = true;
    this.#resume = '';
    this.#kept = [];
    if (this.#state === 'open') this.#onLost();
    this.#socket.again();
  }

  /** @param {CallError} error */
  #end(error) {
    if (this.#state === 'ended') return;
    this.#close();
    emit(this, 'ended', error);
  }

  #close() {
    this.#state = 'ended';
    clearTimeout(this.#joinTimer);
    this.#socket.close();
  }
}
