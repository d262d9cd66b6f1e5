// Encryption from end to end, for one page: the secret, the worker, and what cannot be read.

import { SECRET_BYTES } from './sealed-frame.js';

/** @typedef {import('./encryption-worker.js').State} State */

/** Of a secret in a link: unpadded base64url. */
const digits = /^[A-Za-z0-9_-]+$/;

/** Whether this browser can do it. */
export const canEncrypt = 'RTCRtpScriptTransform' in globalThis && 'subtle' in (globalThis.crypto ?? {});

/** @returns {string} a new secret as it stands in a link */
export function newSecret() {
  const bytes = crypto.getRandomValues(new Uint8Array(2 * SECRET_BYTES));
  return btoa(String.fromCharCode(...bytes)).replace(/\+/g, '-').replace(/\//g, '_').replace(/=/g, '');
}

/**
 * @param {string} text
 * @returns {Uint8Array | null} null for what is no secret, or too short
 */
export function readSecret(text) {
  if (!digits.test(text) || text.length % 4 === 1) return null;
  const bytes = Uint8Array.from(atob(text.replace(/-/g, '+').replace(/_/g, '/')), (c) => c.charCodeAt(0));
  return bytes.length < SECRET_BYTES ? null : bytes;
}

/** Event: `change`, when what can be read has changed. */
export class Encryption extends EventTarget {
  #secret;
  #worker = new Worker(new URL('./encryption-worker.js', import.meta.url), { type: 'module' });
  #made = 0;
  /**
   * The receivers' tracks, by the id that the worker names them with.
   * @type {Map<number, MediaStreamTrack>}
   */
  #tracks = new Map();
  /** @type {WeakMap<MediaStreamTrack, State>} */
  #states = new WeakMap();

  /** @param {Uint8Array} secret */
  constructor(secret) {
    super();
    this.#secret = secret;
    this.#worker.addEventListener('message', ({ data: { id, state } }) => {
      const track = this.#tracks.get(id);
      if (!track) return;
      this.#states.set(track, state);
      this.dispatchEvent(new Event('change'));
    });
  }

  /**
   * For the options of a call.
   * @param {'send' | 'receive'} side
   * @param {'audio' | 'video'} kind
   * @param {MediaStreamTrack | null} track of a receiver
   */
  createTransform(side, kind, track) {
    const id = ++this.#made;
    for (const [old, { readyState }] of this.#tracks) if (readyState === 'ended') this.#tracks.delete(old);
    if (track) this.#tracks.set(id, track);
    const Transform = /** @type {any} */ (globalThis).RTCRtpScriptTransform;
    return new Transform(this.#worker, { side, kind, id, secret: this.#secret });
  }

  /**
   * @param {MediaStream} stream
   * @returns {State}
   */
  stateOf(stream) {
    return stream.getTracks().map((track) => this.#states.get(track)).find((state) => state !== undefined && state !== 'open') ?? 'open';
  }

  close() {
    this.#worker.terminate();
  }
}
