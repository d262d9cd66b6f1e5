// The lobby, where a person gives a name and a room before a call, sees their own picture, and chooses devices.

import { attach } from '../holdfast/attach.js';
import { DevicePicker } from './device-picker.js';
import { find, make } from './elements.js';
import { Level } from './level.js';
import { showAllowed } from './allowed.js';
import { forbidden, ofGrant, ofPlace } from './sentences.js';
import { say } from './words.js';

/** @typedef {import('./devices.js').Devices} Devices */

/** How many missed rings and messages are listed; the newest stay. */
const MISSED = 10;

export class Lobby {
  #root = find('#lobby', HTMLElement);
  #preview = find('#preview', HTMLVideoElement);
  #note = find('#preview-note', HTMLElement);
  #problem = find('#problem', HTMLElement);
  #enter = find('#enter', HTMLButtonElement);
  #cancel = find('#cancel', HTMLButtonElement);
  #retry = find('#retry', HTMLButtonElement);
  #name = find('#name', HTMLInputElement);
  #room = find('#room', HTMLInputElement);
  #encrypt = find('#encrypt', HTMLInputElement);
  #form = find('#join', HTMLFormElement);
  #line = find('#line-up', HTMLElement);
  #ended = find('#ended', HTMLElement);
  #missed = find('#missed', HTMLElement);
  #stop = () => {};
  #level = new Level(find('#lobby-level', HTMLElement));
  #devices;
  #picker;
  /** @type {MediaStreamTrack | null} */
  #metered = null;

  /**
   * @param {Devices} devices
   * @param {{name: string, room: string, link: {name: string, room: string}, encrypt: boolean, mayEncrypt: boolean, onJoin: (name: string, room: string) => void, onCancel: () => void, onName: (name: string) => void}} options `link`: what its token decides
   */
  constructor(devices, { name, room, link, encrypt, mayEncrypt, onJoin, onCancel, onName }) {
    this.#devices = devices;
    this.#picker = new DevicePicker(find('#lobby-devices', HTMLElement), devices, /** @type {const} */ (['microphone', 'camera', 'speaker']).filter((kind) => kind === 'speaker' || devices.may(kind)));
    [this.#name.value, this.#room.value] = [link.name || name, link.room || room];
    [this.#name.readOnly, this.#room.readOnly] = [link.name !== '', link.room !== ''];
    const note = find('#grant-note', HTMLElement);
    note.textContent = ofGrant({ microphone: devices.may('microphone'), camera: devices.may('camera') });
    note.hidden = note.textContent === '';
    this.#cancel.addEventListener('click', onCancel);
    this.#name.addEventListener('change', () => onName(this.values.name));
    find('#missed-seen', HTMLButtonElement).addEventListener('click', () => {
      this.#forget();
      this.show();
    });
    this.#retry.addEventListener('click', () => devices.retry());
    this.#encrypt.checked = encrypt;
    this.offerEncryption(mayEncrypt);
    find('#stop-waiting', HTMLButtonElement).addEventListener('click', () => this.#stop());
    find('#rejoin', HTMLButtonElement).addEventListener('click', () => this.#form.requestSubmit());
    find('#elsewhere', HTMLButtonElement).addEventListener('click', () => {
      this.#over(false);
      this.show();
      devices.wake();
    });
    this.#form.addEventListener('submit', (event) => {
      event.preventDefault();
      const [who, where] = [this.#name.value.trim(), this.#room.value.trim()];
      if (who && where) onJoin(who, where);
      else this.say(say('lobby.incomplete'));
    });
    devices.addEventListener('change', () => this.#paint());
  }

  /** Shows the own picture. Call this after the page has loaded, because an empty stream would delay the page's load event. */
  preview() {
    attach(this.#preview, this.#devices.stream);
    this.#paint();
  }

  get values() {
    return { name: this.#name.value.trim(), room: this.#room.value.trim() };
  }

  /** @param {string} room */
  set room(room) {
    if (!this.#room.readOnly) this.#room.value = room;
  }

  /** @param {boolean} offered whether a key could reach somebody */
  offerEncryption(offered) {
    find('#encrypt-choice', HTMLElement).hidden = !offered;
  }

  get encrypts() {
    return this.#encrypt.checked;
  }

  show() {
    this.#root.hidden = false;
    this.#preview.play().catch(() => {});
    this.#paint();
    if (!this.#name.value) this.#name.focus();
    else if (!this.#room.value) this.#room.focus();
    else this.#enter.focus({ preventScroll: true }); // On a phone one's own picture stays in sight.
  }

  hide() {
    this.#root.hidden = true;
    this.#forget();
    this.#meter(null);
  }

  /** @param {string} text what nobody was there for */
  missed(text) {
    const list = find('#missed-list', HTMLElement);
    list.append(make('li', '', text));
    while (list.childElementCount > MISSED) list.firstElementChild?.remove();
    this.#missed.hidden = false;
  }

  #forget() {
    this.#missed.hidden = true;
    find('#missed-list', HTMLElement).replaceChildren();
  }

  /** @param {boolean} busy */
  setBusy(busy) {
    this.#enter.disabled = busy;
    this.#enter.textContent = say(busy ? 'lobby.joining' : 'lobby.join');
    this.#cancel.hidden = !busy;
    if (!busy) return;
    this.say('');
    this.#over(false);
  }

  /**
   * Shows that a call is over, until the person joins again or looks for another room.
   * @param {string} room
   * @param {string} why it ended; empty where that was one's own wish
   */
  end(room, why) {
    find('#ended-title', HTMLElement).textContent = say(why ? 'ended.over' : 'ended.left');
    find('#ended-text', HTMLElement).textContent = why || say('ended.room', { room });
    this.#over(true);
    this.#devices.rest();
    find('#rejoin', HTMLButtonElement).focus();
  }

  /** @param {boolean} over */
  #over(over) {
    [this.#ended.hidden, this.#form.hidden] = [!over, over];
  }

  /**
   * Shows a place in line instead of the form, or the form again for null.
   * @param {{position: number, reason: string, estimateMs?: number} | null} place
   * @param {() => void} [stop]
   */
  wait(place, stop = () => {}) {
    const began = place !== null && this.#line.hidden;
    [this.#line.hidden, this.#form.hidden, this.#stop] = [place === null, place !== null, stop];
    if (!place) return;
    const [title, text] = ofPlace(place);
    find('#line-title', HTMLElement).textContent = title;
    find('#line-text', HTMLElement).textContent = text;
    document.title = `${title} · Holdfast`;
    if (began) find('#stop-waiting', HTMLButtonElement).focus();
  }

  /** @param {string} text what went wrong; empty for nothing */
  say(text) {
    if (this.#problem.textContent === text) return; // Or it would be read out again.
    this.#problem.textContent = text;
    this.#problem.hidden = text === '';
    this.#problem.scrollIntoView({ block: 'nearest' });
  }

  #paint() {
    if (this.#root.hidden) return;
    const { problems, asking } = this.#devices;
    const seen = this.#devices.on('camera');
    this.#preview.hidden = !seen;
    this.#preview.classList.toggle('backwards', this.#devices.backwards);
    this.#note.hidden = seen;
    this.#note.classList.toggle('asking', asking);
    this.#retry.hidden = seen || asking || this.#devices.resting || !(problems.camera || problems.microphone);
    showAllowed(this.#root, (source) => source === 'screen' || this.#devices.may(source), this.#devices);
    find('.mirror-controls', HTMLElement).hidden = this.#devices.resting;
    if (this.#devices.resting) this.#note.textContent = say('lobby.resting');
    else if (!this.#devices.may('camera')) this.#note.textContent = forbidden('camera');
    else if (asking) this.#note.textContent = say('lobby.asking');
    else if (problems.camera) this.#note.textContent = `${problems.camera} ${say(problems.camera === problems.microphone ? 'lobby.without.them' : 'lobby.without.it')}`;
    else this.#note.textContent = say(this.#devices.off.camera ? 'lobby.camera.off' : 'lobby.camera.starting');
    const silence = find('#microphone-note', HTMLElement);
    silence.textContent = problems.microphone === problems.camera ? '' : problems.microphone;
    silence.hidden = silence.textContent === '';
    this.#meter(this.#devices.on('microphone') ? this.#devices.track('microphone') : null);
    this.#picker.refresh();
  }

  /** @param {MediaStreamTrack | null} track */
  #meter(track) {
    if (track === this.#metered) return;
    this.#metered = track;
    this.#level.show(track);
  }
}
