// Which message of this client an error of the server is about.

/** @typedef {import('./protocol.js').ClientMessage} ClientMessage */

/** How many of the newest messages are remembered. A node answers with an error within seconds, and takes 40 messages a second. */
const REMEMBERED = 500;

export class Requests {
  #last = 0;
  /** @type {Map<string, ClientMessage>} */
  #sent = new Map();

  /**
   * Returns a new id for a message.
   * @param {ClientMessage} message
   */
  name(message) {
    const request = `${++this.#last}`;
    this.#sent.set(request, message);
    if (this.#sent.size > REMEMBERED) this.#sent.delete(/** @type {string} */ (this.#sent.keys().next().value));
    return request;
  }

  /**
   * The message that an error is about; undefined when the error names none, as from a server of before.
   * @param {import('./protocol.js').ServerError} error
   */
  of({ request = '' }) {
    return this.#sent.get(request);
  }

  /** Forgets all messages, because a new connection answers none of them. */
  forget() {
    this.#sent.clear();
  }
}
