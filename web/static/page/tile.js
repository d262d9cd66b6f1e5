// A person or a shared screen. Its elements stay; what they show changes inside their streams.

import { attach } from '../holdfast/index.js';
import { icon, make, who } from './elements.js';
import { colour, initials } from './face.js';
import { say } from './words.js';

/** @typedef {import('./layout.js').Box} Box */
/** @typedef {import('./quality.js').Quality} Quality */
/**
 * @typedef {object} Appearance
 * @property {string} name
 * @property {string} [title] what the tile says of it, if more than the name
 * @property {string} identity
 * @property {boolean} silent the microphone is off
 * @property {boolean} dark there is no picture
 * @property {boolean} paused the picture is held back, because the way here is too narrow
 * @property {string} [problem] why nothing of it is shown, in a sentence
 * @property {boolean} pinned
 * @property {number} [hand] 1 for who raised it first, 0 for none
 */

/** How long a reaction floats over the tile. */
const REACTION_MS = 3000;

export class Tile {
  root = make('article', 'tile');
  video = make('video', '');
  /** @type {HTMLAudioElement | null} */
  audio = null;
  #who = who();
  #face = make('div', 'face');
  #quality = make('span', 'quality');
  #held = make('p', 'held');
  #hand = make('span', 'raised');
  #handPlace = make('span', '');
  #screen;
  #pin = make('button', 'pin');
  #more = make('button', 'pin options');
  #painted = '';
  #ratio = 0;
  #onShape;
  /** @type {Appearance | null} */
  #appearance = null;

  /**
   * @param {{key: string, peer: string, self: boolean, screen: boolean, picture: MediaStream, sound: MediaStream | null, onPin: () => void, onBlocked: () => void, onMenu?: (button: HTMLElement) => void, onShape?: () => void}} options `onShape`: `ratio` is another one
   */
  constructor({ key, peer, self, screen, picture, sound, onPin, onBlocked, onMenu = () => {}, onShape = () => {} }) {
    const { root, video } = this;
    this.#screen = screen;
    this.#onShape = onShape;
    root.dataset.key = key;
    root.dataset.peer = peer;
    root.classList.toggle('self', self && !screen);
    root.classList.toggle('screen', screen);
    [video.playsInline, video.muted] = [true, true];
    video.tabIndex = -1;
    attach(video, picture);
    // The first picture is there, or it is shown in a window of its own.
    for (const event of ['resize', 'enterpictureinpicture', 'leavepictureinpicture']) {
      video.addEventListener(event, () => this.#appearance && this.paint(this.#appearance));
    }
    this.#face.setAttribute('aria-hidden', 'true');
    const plate = make('div', 'plate');
    plate.append(icon(screen ? 'screen' : 'mic-off'), this.#who, this.#quality);
    this.#pin.type = 'button';
    this.#pin.append(icon('pin'));
    this.#pin.addEventListener('click', (event) => {
      event.stopPropagation();
      onPin();
    });
    this.#more.type = 'button';
    this.#more.append(icon('more'));
    this.#more.setAttribute('aria-haspopup', 'menu');
    this.#more.setAttribute('aria-expanded', 'false');
    this.#more.addEventListener('click', (event) => {
      event.stopPropagation();
      onMenu(this.#more);
    });
    root.addEventListener('click', onPin);
    this.#held.setAttribute('aria-hidden', 'true'); // The tile's own label says it.
    this.#hand.append(icon('hand'), this.#handPlace);
    this.#hand.setAttribute('aria-hidden', 'true');
    this.#hand.hidden = true;
    root.append(video, this.#face, this.#held, this.#hand, plate, this.#pin, this.#more);
    if (sound) this.#sound(sound, onBlocked);
  }

  /** The width of the picture that is shown by its height; 0 where none is. */
  get ratio() {
    return this.#ratio;
  }

  /** @param {Box | null} box null: out of sight */
  place(box) {
    const { style } = this.root;
    this.root.hidden = box === null;
    if (!box) return;
    style.setProperty('transform', `translate(${box.x}px, ${box.y}px)`);
    style.setProperty('width', `${box.width}px`);
    style.setProperty('height', `${box.height}px`);
    // In a low tile the face leaves the name its place.
    this.#face.style.setProperty('font-size', `${Math.min(Math.max(box.height * 0.14, 15), Math.max((box.height - 42) / 3.2, 8), 44)}px`);
    this.root.classList.toggle('small', box.width < 190);
  }

  /** @param {Appearance} appearance */
  paint(appearance) {
    this.#appearance = appearance;
    const floats = document.pictureInPictureElement === this.video;
    const { videoWidth, videoHeight } = this.video;
    const text = `${JSON.stringify(appearance)}${videoWidth}x${videoHeight}${floats}`;
    if (text === this.#painted) return;
    this.#painted = text;
    const { name, title = name, identity, silent, paused, problem = '', pinned, hand = 0 } = appearance;
    // The last picture stays, dimmed; until the first one the face does.
    const loading = !appearance.dark && videoWidth === 0;
    const dark = appearance.dark || problem !== '' || loading || floats; // The browser's own words for it are not the page's.
    this.#who.textContent = title;
    this.#face.textContent = initials(name);
    this.#face.style.setProperty('--face', colour(identity));
    this.#hand.hidden = hand === 0;
    this.#handPlace.textContent = String(hand || '');
    this.root.classList.toggle('silent', silent);
    this.root.classList.toggle('dark', dark);
    this.root.classList.toggle('pinned', pinned);
    this.root.classList.toggle('loading', loading && problem === '');
    const held = problem || (paused ? say(this.#screen ? 'tile.screen.paused' : 'tile.paused') : floats ? say('tile.floats') : '');
    this.root.classList.toggle('paused', held !== '');
    this.#held.textContent = held;
    this.#held.title = held;
    this.root.setAttribute('aria-label', [title, hand > 0 && say('person.hand'), silent && say('person.muted'), held || (dark && say(loading ? 'tile.loading' : 'tile.dark'))].filter(Boolean).join(', '));
    this.#pin.setAttribute('aria-pressed', String(pinned));
    this.#pin.setAttribute('aria-label', say(pinned ? 'tile.unpin' : 'tile.pin', { name: title }));
    this.#more.ariaLabel = say('person.more', { name: title });
    this.#more.title = say('more');
    this.#pin.title = say(pinned ? 'unpin' : 'pin');
    const ratio = dark || videoHeight === 0 ? 0 : videoWidth / videoHeight;
    if (ratio === this.#ratio) return;
    this.#ratio = ratio;
    this.#onShape();
  }

  /** @param {boolean} speaking */
  speak(speaking) {
    this.root.classList.toggle('speaking', speaking);
  }

  /** @param {string} emoji floats over the tile; words are told elsewhere */
  react(emoji) {
    const float = make('span', 'float', emoji);
    float.setAttribute('aria-hidden', 'true');
    this.root.querySelectorAll('.float').forEach((before) => before.remove());
    this.root.append(float);
    setTimeout(() => float.remove(), REACTION_MS);
  }

  /** @param {Quality | null} quality */
  judge(quality) {
    const shown = quality === 'weak' || quality === 'lost' ? quality : null;
    this.#quality.textContent = shown ? say(`quality.${shown}`) : '';
    this.root.dataset.quality = quality ?? '';
    this.#quality.title = shown ? say(`quality.${shown}.means`) : '';
  }

  /** To be called in a click. */
  play() {
    this.audio?.play().catch(() => {});
    this.video.play().catch(() => {});
  }

  /** @param {string} id of a loudspeaker; empty for the system's */
  speaker(id) {
    const audio = /** @type {any} */ (this.audio);
    if (audio?.setSinkId) audio.setSinkId(id).catch(() => {});
  }

  remove() {
    this.video.srcObject = null;
    if (this.audio) this.audio.srcObject = null;
    this.root.remove();
  }

  /**
   * @param {MediaStream} stream
   * @param {() => void} onBlocked the browser wants a click before it plays sound
   */
  #sound(stream, onBlocked) {
    const audio = document.createElement('audio');
    attach(audio, stream);
    audio.play().catch((error) => {
      if (error.name === 'NotAllowedError') onBlocked();
    });
    this.root.append(audio);
    this.audio = audio;
  }
}
