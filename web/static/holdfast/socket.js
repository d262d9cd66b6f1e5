// A WebSocket that reconnects until it is closed, and replaces a connection whose server no longer answers pings.

import { emit } from './emit.js';
import { readServerMessage, SUBPROTOCOL } from './protocol.js';
import { reconnectDelayMs } from './reconnect-policy.js';
import { Requests } from './requests.js';

const OPEN_LIMIT_MS = 5000;
/** How long the answer to the first message may take. A server answers a join within 10 s and a resume within 7 s. */
const ANSWER_LIMIT_MS = 12000;
/** The time between two pings. They show a dead path, and keep proxies from closing the socket. */
const PING_MS = 4000;
/** When a ping has had no answer for this long, the socket is half open and is replaced. The time runs from the ping and not from the last
 * message, because a hidden tab pings only once a minute. */
const SILENT_MS = 7000;
/** The messages without an id of their own: an error before the session is open answers the first message, and nothing answers the others. */
const UNNAMED = new Set(['join', 'resume', 'connect', 'leave', 'ping']);

/** @typedef {import('./protocol.js').ClientMessage} ClientMessage */
/** @typedef {import('./protocol.js').ServerMessage} ServerMessage */
/** @typedef {import('./call-options.js').SocketMaker} SocketMaker */

/** Events: `trying`, `open` (nothing said yet), `message` (a ServerMessage), `lost` (of an open socket), `failed` (a try did not open). */
export class Socket extends EventTarget {
  #url;
  #Maker;
  /** @type {WebSocket | null} */
  #ws = null;
  #opened = false;
  #closed = false;
  #tries = 0;
  /**
   * When the first ping after the last received message was sent; null when none was.
   * @type {number | null}
   */
  #pingedAt = null;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #retryTimer;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #openTimer;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #answerTimer;
  #settled = false;
  #requests = new Requests();
  /** @type {ReturnType<typeof setInterval> | undefined} */
  #pingTimer;
  #onOnline = () => this.#tryNow();

  /**
   * @param {string} url
   * @param {SocketMaker} [Maker] WebSocket, or a stand-in
   */
  constructor(url, Maker = WebSocket) {
    super();
    this.#url = url;
    this.#Maker = Maker;
  }

  open() {
    globalThis.addEventListener?.('online', this.#onOnline);
    this.#try();
  }

  /** The first message is answered: pings begin, and the next loss is followed by a quick first try. */
  settle() {
    this.#tries = 0;
    this.#settled = true;
    clearTimeout(this.#answerTimer);
    clearInterval(this.#pingTimer);
    this.#pingTimer = setInterval(() => this.#ping(), PING_MS);
  }

  /** @param {number} [afterMs] the server's wish; otherwise the policy's delay */
  again(afterMs) {
    this.#drop();
    this.#schedule(afterMs);
  }

  /**
   * @param {ClientMessage} message
   * @param {ClientMessage} [original] what `refused` returns when the server refuses the message
   * @returns {boolean} false when there is no open socket; nothing is queued here
   */
  send(message, original = message) {
    if (!this.#ws || !this.#opened) return false;
    this.#ws.send(JSON.stringify(UNNAMED.has(message.type) ? message : { ...message, request: this.#requests.name(original) }));
    if (!this.#settled) this.#answerTimer ??= setTimeout(() => this.#onGone(), ANSWER_LIMIT_MS);
    return true;
  }

  /**
   * The message of the present connection that a server's error is about; undefined when it names none.
   * @param {import('./protocol.js').ServerError} error
   */
  refused(error) {
    return this.#requests.of(error);
  }

  close() {
    this.#closed = true;
    globalThis.removeEventListener?.('online', this.#onOnline);
    clearTimeout(this.#retryTimer);
    this.#drop();
  }

  #try() {
    clearTimeout(this.#retryTimer);
    if (this.#closed || this.#ws) return;
    this.#tries++;
    emit(this, 'trying');
    const ws = new this.#Maker(this.#url, SUBPROTOCOL);
    this.#ws = ws;
    // A dropped socket may still raise events, which are ignored.
    const current = () => this.#ws === ws;
    ws.onopen = () => current() && this.#onOpen();
    ws.onmessage = ({ data }) => current() && this.#onMessage(data);
    ws.onclose = () => current() && this.#onGone();
    ws.onerror = () => {}; // `close` follows and says the same.
    this.#openTimer = setTimeout(() => current() && !this.#opened && this.#onGone(), OPEN_LIMIT_MS);
  }

  #onOpen() {
    clearTimeout(this.#openTimer);
    this.#opened = true;
    emit(this, 'open');
  }

  /** @param {unknown} data */
  #onMessage(data) {
    this.#pingedAt = null;
    const message = readServerMessage(data);
    if (message && message.type !== 'pong') emit(this, 'message', message);
  }

  #onGone() {
    const wasOpen = this.#opened;
    this.#drop();
    this.#schedule();
    emit(this, wasOpen ? 'lost' : 'failed');
  }

  #ping() {
    const now = performance.now();
    this.#pingedAt ??= now;
    if (now - this.#pingedAt > SILENT_MS) this.#onGone();
    else this.send({ type: 'ping', t: Math.round(now) });
  }

  #tryNow() {
    if (this.#closed || this.#opened) return;
    this.#drop();
    this.#try();
  }

  #drop() {
    clearTimeout(this.#openTimer);
    clearTimeout(this.#answerTimer);
    clearInterval(this.#pingTimer);
    [this.#answerTimer, this.#settled, this.#pingedAt] = [undefined, false, null];
    const ws = this.#ws;
    this.#ws = null;
    this.#opened = false;
    this.#requests.forget();
    if (ws) {
      ws.onopen = ws.onmessage = ws.onclose = null;
      ws.close(1000);
    }
  }

  /** @param {number} [afterMs] */
  #schedule(afterMs = reconnectDelayMs(this.#tries)) {
    clearTimeout(this.#retryTimer);
    if (!this.#closed) this.#retryTimer = setTimeout(() => this.#try(), afterMs);
  }
}
