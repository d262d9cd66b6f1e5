// Tells the call what is in sight: what nobody sees costs nothing.

/** @typedef {import('../holdfast/call.js').Call} Call */
/** @typedef {import('../holdfast/protocol.js').Source} Source */
/** @typedef {{peer: string, source: Source, root: HTMLElement, width: number, height: number}} Shown */

/** The last state counts. */
const DEBOUNCE_MS = 120;
/** The most wants that one `view` message may have (docs/PROTOCOL.md). */
const MOST_WANTS = 500;
/** The least size that is asked for a picture over other windows, which is seen even while the page is hidden. */
const FLOATING = { width: 480, height: 270 };

/** @param {HTMLElement} root */
const floats = (root) => document.pictureInPictureElement != null && root.contains(document.pictureInPictureElement);

export class View {
  #call;
  /** @type {Shown[]} most important first */
  #shown = [];
  /** @type {Set<Element>} */
  #covered = new Set();
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  #told = false;
  #observer;

  /** @param {Call} call */
  constructor(call) {
    this.#call = call;
    this.#observer = new IntersectionObserver((entries) => {
      for (const { target, isIntersecting } of entries) {
        if (isIntersecting) this.#covered.delete(target);
        else this.#covered.add(target);
      }
      this.#soon();
    });
    const stop = new AbortController();
    for (const type of ['visibilitychange', 'enterpictureinpicture', 'leavepictureinpicture']) document.addEventListener(type, () => this.#soon(), { signal: stop.signal });
    call.addEventListener('left', () => {
      stop.abort();
      this.#observer.disconnect();
      clearTimeout(this.#timer);
    }, { once: true });
  }

  /**
   * Takes note of the shown elements; a size of 0 x 0 means out of sight.
   * @param {Shown[]} shown
   */
  show(shown) {
    for (const { root } of shown) {
      if (!this.#shown.some((before) => before.root === root)) this.#observer.observe(root);
    }
    for (const { root } of this.#shown) {
      if (shown.some((now) => now.root === root)) continue;
      this.#observer.unobserve(root);
      this.#covered.delete(root);
    }
    this.#shown = shown;
    if (this.#told) this.#soon();
    else this.#tell(); // The first picture shall not wait.
  }

  /** @param {string} peer */
  sees(peer) {
    return this.#shown.some((one) => one.peer === peer && one.source === 'camera' && floats(one.root)) || !document.hidden && this.#shown.some((one) => one.peer === peer && one.source === 'camera' && one.width > 0 && !this.#covered.has(one.root));
  }

  #soon() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#tell(), DEBOUNCE_MS);
  }

  #tell() {
    if (this.#call.state === 'left') return;
    this.#told = this.#shown.length > 0;
    const scale = globalThis.devicePixelRatio || 1;
    this.#call.setView(this.#shown.slice(0, MOST_WANTS).map(({ peer, source, root, width, height }) => {
      if (floats(root)) return { peer, source, width: Math.round(Math.max(width, FLOATING.width) * scale), height: Math.round(Math.max(height, FLOATING.height) * scale) };
      const hidden = document.hidden || this.#covered.has(root);
      return { peer, source, width: hidden ? 0 : Math.round(width * scale), height: hidden ? 0 : Math.round(height * scale) };
    }));
  }
}
