// Presence without a call, for example on an application's start page: the user is shown as online, and the page learns who else is online.

import { leadsNowhere, nowhere, socketUrl } from './address.js';
import { checkIdentities, checkLimit, checkToken } from './arguments.js';
import { emit } from './emit.js';
import { CallError } from './errors.js';
import { Messages } from './messages.js';
import { Socket } from './socket.js';
import { WatchList } from './watch-list.js';

/** @typedef {import('./protocol.js').UserPresence} UserPresence */
/** @typedef {'idle' | 'connecting' | 'connected' | 'reconnecting' | 'closed'} PresenceState */
/**
 * @typedef {object} PresenceOptions
 * @property {string | URL} url as a call's
 * @property {import('./call-options.js').TokenSource} token any access token with an identity; a function is asked for each connection
 * @property {number} [connectLimitMs] how long to try for the first connection; without it until `close`
 */

/**
 * Events, each a CustomEvent:
 * - `state` {state}
 * - `presence` {changes}: the watched users of whom something else is known now
 * - `error` CallError: told; it goes on trying
 * - `closed` {code, message}: it is over, by `close` or because the server refuses
 */
export class Presence extends /** @type {import('./events.js').TypedTarget<import('./events.js').PresenceEvents>} */ (EventTarget) {
  /** @type {PresenceState} */
  #state = 'idle';
  #Maker;
  /** @type {Socket | null} */
  #socket = null;
  /** @type {import('./protocol.js').Connected | null} */
  #me = null;
  /** @type {import('./call-options.js').TokenSource} */
  #token = '';
  #attempt = 0;
  #watched = new WatchList(this, (message) => this.#socket?.send(message) ?? false);

  /** Direct messages: see Messages. */
  messages = new Messages((message) => this.#socket?.send(message) ?? false);

  /** @param {{WebSocket?: import('./call-options.js').SocketMaker}} [options] a stand-in, for tests only */
  constructor(options = {}) {
    super();
    this.#Maker = options.WebSocket;
  }

  get state() {
    return this.#state;
  }

  /** The user's identity; empty before the first connection. */
  get identity() {
    return this.#me?.identity ?? '';
  }

  /** The presence of every watched user; `unknown` until an answer has come, and after 15 s without a connection. */
  get watched() {
    return this.#watched.users;
  }

  /**
   * Resolves when the user is online for the first time. Rejects with a CallError: at once with `bad_url`, `bad_token` or `bad_argument`; when the
   * server refuses for good; after `close`; and with `unreachable` after `connectLimitMs`, if that is given.
   * @param {PresenceOptions} options
   * @returns {Promise<void>}
   */
  async connect(options) {
    if (this.#state !== 'idle') throw new CallError('bad_state');
    const address = socketUrl(options?.url);
    const { token, connectLimitMs } = options;
    checkToken(token, true);
    checkLimit('connectLimitMs', connectLimitMs);
    const socket = new Socket(address, this.#Maker);
    this.#socket = socket;
    this.#token = token;
    socket.addEventListener('open', () => this.#onOpen(socket));
    socket.addEventListener('failed', async () => {
      if (this.#state === 'connecting' && (await leadsNowhere(address)) && this.#state === 'connecting') this.#end(nowhere(address));
    }, { once: true });
    socket.addEventListener('lost', () => this.#onLost());
    socket.addEventListener('message', (event) => this.#onMessage(socket, /** @type {CustomEvent} */ (event).detail));
    this.#setState('connecting');
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let limit;
    if (connectLimitMs !== undefined) limit = setTimeout(() => this.#end(new CallError('unreachable', { retryable: true })), connectLimitMs);
    return new Promise((resolve, reject) => {
      this.addEventListener('state', () => {
        clearTimeout(limit);
        if (this.#state === 'connected') resolve(undefined);
      }, { once: true });
      this.addEventListener('closed', (event) => reject(CallError.of(/** @type {CustomEvent} */ (event).detail)), { once: true });
      socket.open();
    });
  }

  /**
   * Replaces the watched identities. Throws a CallError for more than 500. Without `canWatch` in the token an `error` event tells so.
   * @param {Iterable<string>} users
   */
  watch(users) {
    this.#watched.set(checkIdentities(users));
  }

  /** Ends presence. The user is shown as offline at once, unless another tab is open. */
  close() {
    this.#socket?.send({ type: 'leave' });
    this.#end({ code: 'left', message: 'Presence was closed.' });
  }

  /** @param {Socket} socket */
  async #onOpen(socket) {
    const attempt = ++this.#attempt;
    let token;
    try {
      token = typeof this.#token === 'function' ? await this.#token() : this.#token;
      checkToken(token, false);
    } catch (cause) {
      if (attempt !== this.#attempt || this.#state === 'closed') return;
      if (cause instanceof CallError && cause.code === 'bad_token') {
        this.#end(cause);
        return;
      }
      emit(this, 'error', new CallError('no_token', { cause, retryable: true }));
      socket.again();
      return;
    }
    // When another socket has opened meanwhile, that socket's own `connect` is sent instead.
    if (attempt === this.#attempt) socket.send({ type: 'connect', token });
  }

  #onLost() {
    if (this.#state !== 'connected') return;
    this.#watched.lost();
    this.messages.lost();
    this.#setState('reconnecting');
  }

  /**
   * @param {Socket} socket
   * @param {import('./protocol.js').ServerMessage} message
   */
  #onMessage(socket, message) {
    switch (message.type) {
      case 'connected':
        this.#me = message;
        socket.settle();
        this.#setState('connected');
        this.#watched.opened(message.watch);
        this.messages.opened(message.message === true ? 'anywhere' : '');
        break;
      case 'message':
      case 'message-state':
        this.messages.heard(message);
        break;
      case 'presence':
        this.#watched.heard(message.users);
        break;
      case 'error':
        this.#onError(socket, message);
        break;
      case 'bye':
        this.#end(message);
        break;
      default:
    }
  }

  /**
   * @param {Socket} socket
   * @param {import('./protocol.js').ServerError} message
   */
  #onError(socket, message) {
    const refused = socket.refused(message);
    const error = CallError.of(message, refused?.type);
    if (this.#state === 'connected') {
      if (refused?.type === 'watch') this.#watched.refused(error);
      if (refused?.type === 'message') this.messages.refused(refused, error);
      // The watch list is sent again after it was refused for coming too soon, so that refusal is not reported.
      if (error.code !== 'too_many_messages') emit(this, 'error', error);
    } else if (error.retryable) {
      emit(this, 'error', error);
      socket.again(error.retryAfterMs || undefined);
    } else this.#end(error);
  }

  /** @param {{code: string, message: string}} reason */
  #end({ code, message }) {
    if (this.#state === 'closed' || this.#state === 'idle') return;
    this.#watched.close();
    this.messages.close();
    this.#socket?.close();
    this.#setState('closed');
    emit(this, 'closed', { code, message });
  }

  /** @param {PresenceState} state */
  #setState(state) {
    if (state === this.#state) return;
    this.#state = state;
    emit(this, 'state', { state });
  }
}
