// Showing one's screen, until the person or the browser's own bar ends it.

import { notice } from './notices.js';
import { ofScreen } from './sentences.js';

/** @typedef {import('../holdfast/call.js').Call} Call */

/** Text must stay sharp; it moves little. */
const FPS = 15;

export class Share {
  #call;
  #changed;
  /** @type {MediaStream | null} */
  stream = null;
  #asking = false;

  /**
   * @param {Call} call
   * @param {() => void} changed
   */
  constructor(call, changed) {
    this.#call = call;
    this.#changed = changed;
    call.addEventListener('left', () => this.#drop(), { once: true });
  }

  /** Phones cannot. */
  static get possible() {
    return typeof navigator.mediaDevices?.getDisplayMedia === 'function';
  }

  async toggle() {
    if (this.#asking || !this.#call.mayPublish('screen')) return;
    if (this.stream) await this.stop();
    else await this.#start();
  }

  async #start() {
    this.#asking = true;
    try {
      const stream = await navigator.mediaDevices.getDisplayMedia({ video: { frameRate: { ideal: FPS, max: 30 } }, audio: false });
      const [track] = stream.getVideoTracks();
      if (this.#call.state === 'left') {
        track.stop();
        return;
      }
      track.contentHint = 'detail';
      track.addEventListener('ended', () => this.stop(), { once: true });
      this.stream = stream;
      await this.#call.replaceTrack('screen', track);
    } catch (error) {
      this.#drop();
      // A person who changed their mind needs no word about it.
      if (!(error instanceof DOMException && error.name === 'NotAllowedError')) notice(ofScreen(error));
    } finally {
      this.#asking = false;
      this.#changed();
    }
  }

  async stop() {
    if (!this.stream) return;
    this.#drop();
    await this.#call.replaceTrack('screen', null);
    this.#changed();
  }

  #drop() {
    for (const track of this.stream?.getTracks() ?? []) track.stop();
    this.stream = null;
  }
}
