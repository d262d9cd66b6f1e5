// Showing one's screen, with its sound if the person chose so, until the person or the browser's own bar ends it.

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

  /** Whether the browser can share a screen; phones cannot. */
  static get possible() {
    return typeof navigator.mediaDevices?.getDisplayMedia === 'function';
  }

  /** Whether the shared screen has sound, muted or not. */
  get sounds() {
    return (this.stream?.getAudioTracks().length ?? 0) > 0;
  }

  get silent() {
    return this.#call.isMuted('screen-audio');
  }

  /** Mutes or unmutes the screen's sound. The microphone stays as it is. */
  async toggleSound() {
    await this.#call.setMuted('screen-audio', !this.silent);
    this.#changed();
  }

  async toggle() {
    if (this.#asking || !this.#call.mayPublish('screen')) return;
    if (this.stream) await this.stop();
    else await this.#start();
  }

  async #start() {
    this.#asking = true;
    try {
      const stream = await navigator.mediaDevices.getDisplayMedia(this.#wish());
      const [track] = stream.getVideoTracks();
      const [sound = null] = stream.getAudioTracks();
      if (this.#call.state === 'left') {
        for (const each of stream.getTracks()) each.stop();
        return;
      }
      track.contentHint = 'detail';
      track.addEventListener('ended', () => this.stop(), { once: true });
      this.stream = stream;
      // First, so that it is heard in step with the picture.
      if (sound) {
        sound.contentHint = 'music';
        sound.addEventListener('ended', () => this.#endSound(stream, sound), { once: true });
        await this.#call.setMuted('screen-audio', false);
        await this.#call.replaceTrack('screen-audio', sound);
      }
      await this.#call.setMuted('screen', false); // A host may have stopped the one before.
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
    const { sounds } = this;
    this.#drop();
    await this.#call.replaceTrack('screen', null);
    if (sounds) await this.#call.replaceTrack('screen-audio', null);
    this.#changed();
  }

  /**
   * Ends the screen's sound while its picture goes on.
   * @param {MediaStream} stream
   * @param {MediaStreamTrack} sound
   */
  async #endSound(stream, sound) {
    stream.removeTrack(sound);
    if (this.stream !== stream) return;
    await this.#call.replaceTrack('screen-audio', null);
    this.#changed();
  }

  /**
   * Returns the constraints for the capture. The screen's sound is asked for unprocessed, and without the sound that this page plays, because
   * the others would hear themselves.
   * @returns {DisplayMediaStreamConstraints}
   */
  #wish() {
    const video = { frameRate: { ideal: FPS, max: 30 } };
    if (!this.#call.mayPublish('screen-audio')) return { video, audio: false };
    const own = 'restrictOwnAudio' in navigator.mediaDevices.getSupportedConstraints();
    const audio = { echoCancellation: false, noiseSuppression: false, autoGainControl: false, channelCount: 2, ...(own && { restrictOwnAudio: true }) };
    return /** @type {DisplayMediaStreamConstraints} */ ({ video, audio, selfBrowserSurface: 'exclude', systemAudio: own ? 'include' : 'exclude' });
  }

  #drop() {
    for (const track of this.stream?.getTracks() ?? []) track.stop();
    this.stream = null;
  }
}
