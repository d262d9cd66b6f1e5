// This client's own sources: the track of each, and whether it is muted.

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
   * Applies the state of a source again, because its permission may have changed.
   * @param {Source} source
   */
  renew(source) {
    if (this.#tracks.has(source)) this.#apply(source);
  }

  /** Sends the mute state of every own source again, because a new media node must know it. */
  sayAgain() {
    for (const source of this.#said()) this.#say(source);
  }

  /**
   * Whether nothing is sent of a source, because it is muted, has no track, or is not allowed.
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
   * The sources whose mute state the others are told. A screen and its sound are among them only while they have a track.
   * @returns {Source[]}
   */
  #said() {
    return ['microphone', 'camera', .../** @type {Source[]} */ (['screen', 'screen-audio']).filter((source) => this.#tracks.has(source))];
  }
}
