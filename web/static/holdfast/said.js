// What the client has told the media node of itself (its view, its name, its mute states), kept to tell it to a new node.

/** @typedef {import('./protocol.js').Want} Want */

export class Said {
  #view;
  #own;
  #send;
  #name = '';

  /**
   * @param {import('./view.js').View} view
   * @param {import('./own-sources.js').OwnSources} own
   * @param {(message: import('./protocol.js').ClientMessage) => unknown} send
   */
  constructor(view, own, send) {
    this.#view = view;
    this.#own = own;
    this.#send = send;
  }

  /** @param {Want[]} wants */
  show(wants) {
    if (this.#view.set(wants)) this.#send({ type: 'view', wants });
  }

  /** @param {string} name */
  rename(name) {
    this.#name = name;
    this.#send({ type: 'rename', name });
  }

  /**
   * Forgets what the server refused.
   * @param {import('./protocol.js').ClientMessage} message
   */
  refused(message) {
    if (message.type === 'rename' && message.name === this.#name) this.#name = '';
    if (message.type === 'view' && message.wants === this.#view.wants) this.#view.set([]);
    if (message.type === 'mute' && !message.muted) this.#own.setMuted(message.source, true);
  }

  again() {
    if (this.#view.wants.length > 0) this.#send({ type: 'view', wants: this.#view.wants });
    if (this.#name !== '') this.#send({ type: 'rename', name: this.#name });
    this.#own.sayAgain();
  }
}
