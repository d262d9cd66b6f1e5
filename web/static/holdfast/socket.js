// A WebSocket that comes back: it reconnects until it is closed, and notices a
// peer that went silent. What is said over it is the session's business.

import { emit } from './emit.js';
import { readServerMessage, SUBPROTOCOL } from './protocol.js';
import { reconnectDelayMs } from './reconnect-policy.js';

/** A try that has not opened by then is given up. */
const OPEN_LIMIT_MS = 5000;
/** A ping this often, so that a dead path is noticed and proxies keep the socket. */
const PING_MS = 4000;
/** Nothing heard for this long: the socket is half open, and another one is made. */
const SILENT_MS = 10000;

/** @typedef {import('./protocol.js').ClientMessage} ClientMessage */
/** @typedef {import('./protocol.js').ServerMessage} ServerMessage */
/** @typedef {new (url: string, protocols: string) => WebSocket} SocketMaker */

/**
 * Events: `open` (a new socket, nothing said yet), `message` (detail: a
 * ServerMessage), `lost` (the socket that was open is gone), `failed` (a try did not open).
 */
export class Socket extends EventTarget {
  #url;
  #Maker;
  /** @type {WebSocket | null} */
  #ws = null;
  #opened = false;
  #closed = false;
  #tries = 0;
  #heardAt = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #retryTimer;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #openTimer;
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

  /** Begins, and goes on until `close`. */
  open() {
    globalThis.addEventListener?.('online', this.#onOnline);
    this.#try();
  }

  /** The session stands: pings begin, and the next loss is followed by a quick first try. */
  settle() {
    this.#tries = 0;
    clearInterval(this.#pingTimer);
    this.#pingTimer = setInterval(() => this.#ping(), PING_MS);
  }

  /**
   * Drops this socket and makes another one.
   * @param {number} [afterMs] the server's wish; otherwise the policy's delay
   */
  again(afterMs) {
    this.#drop();
    this.#schedule(afterMs);
  }

  /**
   * @param {ClientMessage} message
   * @returns {boolean} false when there is no open socket; nothing is queued here
   */
  send(message) {
    if (!this.#ws || !this.#opened) return false;
    this.#ws.send(JSON.stringify(message));
    return true;
  }

  /** Ends it for good. */
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
    const ws = new this.#Maker(this.#url, SUBPROTOCOL);
    this.#ws = ws;
    // Events of a socket that was dropped meanwhile mean nothing any more.
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
    this.#heardAt = performance.now();
    emit(this, 'open');
  }

  /** @param {unknown} data */
  #onMessage(data) {
    this.#heardAt = performance.now();
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
    if (performance.now() - this.#heardAt > SILENT_MS) this.#onGone();
    else this.send({ type: 'ping', t: Math.round(performance.now()) });
  }

  #tryNow() {
    if (this.#closed || this.#opened) return;
    this.#drop();
    this.#try();
  }

  #drop() {
    clearTimeout(this.#openTimer);
    clearInterval(this.#pingTimer);
    const ws = this.#ws;
    this.#ws = null;
    this.#opened = false;
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
