// The room's chat as this client has it. The cluster keeps no lines, so what was said
// before a failover is here and nowhere else.

/** @typedef {'sending' | 'sent' | 'failed'} LineState */
/**
 * A line of the chat; `text` is text, never markup.
 * @typedef {{id: string, peer: string, name: string, text: string, at: number, own: boolean, state: LineState}} Line
 */

/** Characters of a line. */
export const CHAT_LIMIT = 2000;
/** Lines kept; the oldest are forgotten. */
const KEPT = 500;
/** How long the echo of a line may take before it is said again: a node may have died with it. */
const REPEAT_MS = 2500;
/** How often a line is said before it counts as not sent. */
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
   * Says a line. It is there at once, and `sent` when the room's node has told it to everybody.
   * @param {{peer: string, name: string, text: string}} line
   * @returns {Line | null} null for a blank one
   */
  say({ peer, name, text }) {
    const words = [...text.trim()].slice(0, CHAT_LIMIT).join('');
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
