// The room's chat as this client has it. The cluster keeps no lines.

/** @typedef {'sending' | 'sent' | 'failed'} LineState */
/**
 * A line of text, never markup.
 * @typedef {{id: string, peer: string, name: string, text: string, at: number, own: boolean, state: LineState}} Line
 */

const KEPT = 500;
/** A line without an echo is sent again after this time, because the node that had it may have died. */
const REPEAT_MS = 2500;
/** A line that has no echo after this many tries counts as not sent. */
const TRIES = 6;

export class Chat {
  #send;
  #changed;
  /** @type {Line[]} */
  #lines = [];
  /** @type {Map<string, ReturnType<typeof setTimeout>>} */
  #waiting = new Map();

  /**
   * @param {(message: import('./protocol.js').Say) => boolean} send
   * @param {(line: Line) => void} changed a line is new, or known to be sent or not
   */
  constructor(send, changed) {
    this.#send = send;
    this.#changed = changed;
  }

  get lines() {
    return this.#lines.map((line) => ({ ...line }));
  }

  /**
   * Adds a line of one's own, and sends it. Its state is `sending` until the server's echo makes it `sent`.
   * @param {{peer: string, name: string, text: string}} line
   * @returns {Line | null} null for a blank one
   */
  say({ peer, name, text }) {
    const words = text.trim();
    if (words === '') return null;
    const id = Math.random().toString(36).slice(2, 12) + Date.now().toString(36);
    /** @type {Line} */
    const line = { id, peer, name, text: words, at: Date.now(), own: true, state: 'sending' };
    this.#add(line);
    this.#try(line, TRIES);
    return line;
  }

  /**
   * @param {import('./protocol.js').Said} said
   * @param {boolean} own
   */
  heard({ peer, name, text, at, id = '' }, own) {
    const known = id === '' ? undefined : this.#lines.find((line) => line.id === id && (own ? line.own : line.peer === peer));
    if (!known) {
      this.#add({ id, peer, name, text, at, own, state: 'sent' });
      return;
    }
    clearTimeout(this.#waiting.get(id));
    this.#waiting.delete(id);
    if (known.state === 'sent') return; // Said twice.
    Object.assign(known, { at, state: 'sent' });
    this.#changed({ ...known });
  }

  /**
   * Counts a line that the server refused as not sent.
   * @param {import('./protocol.js').Say} said
   */
  refused({ id }) {
    const line = this.#lines.find((one) => one.own && one.id === id && one.state === 'sending');
    if (!line) return;
    clearTimeout(this.#waiting.get(line.id));
    this.#try(line, 0);
  }

  close() {
    for (const timer of this.#waiting.values()) clearTimeout(timer);
    this.#waiting.clear();
  }

  /** @param {Line} line */
  #add(line) {
    this.#lines.push(line);
    if (this.#lines.length > KEPT) this.#lines.shift();
    this.#changed({ ...line });
  }

  /**
   * @param {Line} line
   * @param {number} tries
   */
  #try(line, tries) {
    if (tries === 0) {
      this.#waiting.delete(line.id);
      line.state = 'failed';
      this.#changed({ ...line });
      return;
    }
    this.#send({ type: 'chat', text: line.text, id: line.id });
    this.#waiting.set(line.id, setTimeout(() => this.#try(line, tries - 1), REPEAT_MS));
  }
}
