// Two soft notes every few seconds, where the browser lets a page sound.

import { ring } from './test-sound.js';

const EVERY_MS = 3000;

export class Ringtone {
  /** @type {AudioContext | null} */
  #context = null;
  /** @type {ReturnType<typeof setInterval> | undefined} */
  #timer;

  start() {
    if (this.#context) return;
    const context = new AudioContext();
    this.#context = context;
    const sound = () => context.state === 'running' && ring(context, context.destination);
    sound();
    this.#timer = setInterval(sound, EVERY_MS);
  }

  stop() {
    clearInterval(this.#timer);
    this.#context?.close();
    this.#context = null;
  }
}
