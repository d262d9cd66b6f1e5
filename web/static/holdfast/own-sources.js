// A track for each source, and which of them are muted.

import { kindOf } from './screen-audio.js';

/** @typedef {import('./protocol.js').Source} Source */
/**
 * @typedef {object} Outlets
 * @property {(message: import('./protocol.js').Mute) => void} say
 * @property {(source: Source, track: MediaStreamTrack | null) => Promise<void> | undefined} send
 */

export class OwnSources {
  #outlets;
  /** @type {Map<Source, MediaStreamTrack>} */
  #tracks = new Map();
  /** @type {Set<Source>} */
  #muted = new Set();
  /** @type {(source: Source) => boolean} */
  #allowed = () => true;

  /** @param {Outlets} outlets */
  constructor(outlets) {
    this.#outlets = outlets;
  }

  get sources() {
    return [...this.#tracks.keys()];
  }

  /** @param {MediaStream | undefined} stream */
  take(stream) {
    for (const track of stream?.getTracks() ?? []) this.#tracks.set(track.kind === 'audio' ? 'microphone' : 'camera', track);
  }

  /** @param {(source: Source) => boolean} allowed to publish it */
  begin(allowed) {
    this.#allowed = allowed;
    for (const source of this.#said()) this.#apply(source);
  }

  /**
   * It may be allowed now, or no longer.
   * @param {Source} source
   */
  renew(source) {
    if (this.#tracks.has(source)) this.#apply(source);
  }

  /** A new node must know this. */
  sayAgain() {
    for (const source of this.#said()) this.#say(source);
  }

  /**
   * Muted, absent, or not allowed.
   * @param {Source} source
   */
  isMuted(source) {
    return this.#muted.has(source) || !this.#tracks.has(source) || !this.#allowed(source);
  }

  /**
   * @param {Source} source
   * @param {boolean} muted
   */
  async setMuted(source, muted) {
    if (muted) this.#muted.add(source);
    else this.#muted.delete(source);
    await this.#apply(source);
  }

  /**
   * @param {Source} source
   * @param {MediaStreamTrack | null} track
   */
  async replace(source, track) {
    if (track && track.kind !== kindOf(source)) {
      throw new TypeError(`a track of kind ${track.kind} cannot be sent as ${source}`);
    }
    if (track) this.#tracks.set(source, track);
    else this.#tracks.delete(source);
    await this.#apply(source);
  }

  /** @param {Source} source */
  async #apply(source) {
    const sent = this.#allowed(source) && !this.#muted.has(source);
    this.#say(source);
    await this.#outlets.send(source, sent ? this.#tracks.get(source) ?? null : null);
  }

  /** @param {Source} source */
  #say(source) {
    this.#outlets.say({ type: 'mute', source, muted: this.isMuted(source) });
  }

  /**
   * The others are told of a screen and its sound only while there is one.
   * @returns {Source[]}
   */
  #said() {
    return ['microphone', 'camera', .../** @type {Source[]} */ (['screen', 'screen-audio']).filter((source) => this.#tracks.has(source))];
  }
}
