// This person's own microphone and camera.

import { keepChoices, readChoices } from './choices.js';
import { ofDevice } from './sentences.js';
import { say } from './words.js';

/** @typedef {'microphone' | 'camera'} Source */
/** @typedef {{width: number, height: number, fps: number}} Picture */
/** @typedef {{backgroundBlur?: boolean | boolean[]}} Blurring of a track: Media Capture and Streams Extensions, W3C */
/** A problem with a device that the person can solve. */
export class DeviceProblem extends Error {}

/** When the browser's permission question is open for this long, the page points to it. */
const ASKING_MS = 600;

/** Events: `change`, `track` ({source}): another track, or none, is to be sent. */
export class Devices extends EventTarget {
  /** The stream of both devices, the same object for as long as the page lives. */
  stream = new MediaStream();
  off = { microphone: readChoices().microphoneOff, camera: readChoices().cameraOff };
  /**
   * For each source the sentence that says what is wrong; empty when nothing is.
   * @type {Record<Source, string>}
   */
  problems = { microphone: '', camera: '' };
  /** Whether the devices are closed between two calls. */
  resting = false;
  /** Whether the browser is asking the person for permission. */
  asking = false;
  /** @type {Picture} */
  #picture;
  /** @type {{microphone: boolean, camera: boolean}} */
  #allowed;
  /** @type {Set<Source>} */
  #busy = new Set();

  /**
   * @param {Picture} picture
   * @param {{microphone: boolean, camera: boolean}} [allowed] others are not asked for
   */
  constructor(picture, allowed = { microphone: true, camera: true }) {
    super();
    this.#picture = picture;
    this.#allowed = allowed;
    navigator.mediaDevices?.addEventListener('devicechange', () => this.#told());
  }

  /** @param {Source} source */
  track(source) {
    return (source === 'microphone' ? this.stream.getAudioTracks() : this.stream.getVideoTracks())[0] ?? null;
  }

  /** @param {Source} source */
  on(source) {
    return !this.off[source] && this.track(source) !== null;
  }

  /** @param {Source} source */
  may(source) {
    return this.#allowed[source];
  }

  /** Both with one question, else whichever there is. */
  async open() {
    const wanted = /** @type {Source[]} */ (['microphone', 'camera']).filter((source) => this.may(source) && !(source === 'camera' && this.off.camera));
    if (wanted.length === 0) {
      this.#told();
      return;
    }
    const asking = setTimeout(() => this.#ask(true), ASKING_MS);
    try {
      await this.#open(wanted);
    } catch (error) {
      if (wanted.length === 1 || (isDenied(error) && !(await oneIsDenied()))) {
        for (const source of wanted) this.problems[source] = ofDevice(error, wanted.length > 1 ? 'both' : source);
      } else {
        for (const source of wanted) {
          await this.#open([source]).catch((why) => { this.problems[source] = ofDevice(why, source); });
        }
      }
    } finally {
      clearTimeout(asking);
      this.#ask(false);
    }
    this.#mute();
    this.#told();
    for (const source of wanted) this.#told(source); // A call may have begun meanwhile.
    this.#awaitPermission();
  }

  /** Closes the devices after a call, so that the camera's light goes out. The choices of the person stay. */
  rest() {
    this.resting = true;
    for (const source of /** @type {const} */ (['microphone', 'camera'])) this.#drop(source);
    this.#told();
  }

  /** Opens the devices again, when `rest` closed them, before the next call. */
  async wake() {
    if (!this.resting) return;
    this.resting = false;
    await this.open();
  }

  /** Opens a device that was blocked as soon as the person allows it. */
  #awaitPermission() {
    for (const source of /** @type {const} */ (['microphone', 'camera'])) {
      if (!this.problems[source]) continue;
      navigator.permissions?.query({ name: /** @type {PermissionName} */ (source) }).then((permission) => {
        permission.onchange = () => permission.state === 'granted' && this.retry();
      }, () => {}); // Firefox does not know these names.
    }
  }

  /** Opens every device again that failed and was not switched off. */
  async retry() {
    if (this.resting) return;
    for (const source of /** @type {const} */ (['microphone', 'camera'])) {
      if (this.problems[source] && !this.on(source) && !this.off[source]) await this.toggle(source).catch(() => {}); // The problem is told by `change`.
    }
  }

  /**
   * Off means off: the camera is given back, and its light goes out.
   * @param {Source} source
   */
  async toggle(source) {
    if (this.#busy.has(source) || !this.may(source)) return;
    this.#busy.add(source);
    try {
      if (!this.on(source)) {
        this.off[source] = false;
        if (!this.track(source)) await this.#reopen(source);
      } else {
        this.off[source] = true;
        if (source === 'camera') this.#drop('camera');
      }
      keepChoices({ microphoneOff: this.off.microphone, cameraOff: this.off.camera });
    } finally {
      this.#busy.delete(source);
      this.#mute();
      this.#told(source);
    }
  }

  /**
   * @param {Source} source
   * @param {string} id
   */
  async choose(source, id) {
    keepChoices({ [source]: id });
    if (source === 'camera' && this.off.camera) return;
    this.#drop(source);
    try {
      await this.#reopen(source);
    } finally {
      this.#mute();
      this.#told(source);
    }
  }

  /**
   * What the browser does to the microphone's sound. Some browsers do it to a newly opened one only.
   * @param {Partial<{echo: boolean, noise: boolean, gain: boolean}>} wanted
   */
  async process(wanted) {
    keepChoices(wanted);
    const track = this.track('microphone');
    if (!track) return;
    const constraints = processing();
    await track.applyConstraints(constraints).catch(() => {});
    const settings = track.getSettings();
    const done = Object.entries(constraints).every(([name, value]) => /** @type {any} */ (settings)[name] === value);
    if (!done) await this.choose('microphone', settings.deviceId ?? readChoices().microphone);
  }

  /** The browser, or the system below it, can blur what is behind the person. */
  get blurs() {
    const able = /** @type {Blurring} */ (this.track('camera')?.getCapabilities?.() ?? {}).backgroundBlur;
    return Array.isArray(able) && able.includes(true) && able.includes(false);
  }

  /**
   * How what is behind the person can be blurred: `here`, `always` by the system, or `never`. Empty while no camera is on, because then nobody knows.
   * @returns {'here' | 'always' | 'never' | ''}
   */
  get blurring() {
    const track = this.track('camera');
    if (!track) return '';
    if (this.blurs) return 'here';
    return isBlurred(track) ? 'always' : 'never';
  }

  /** @param {boolean} blur */
  async blur(blur) {
    keepChoices({ blur });
    const track = this.track('camera');
    if (!track || !this.blurs) return;
    await track.applyConstraints(/** @type {MediaTrackConstraints} */ ({ ...track.getConstraints(), backgroundBlur: blur })).catch(() => {});
    if (isBlurred(track) !== blur) await this.choose('camera', track.getSettings().deviceId ?? readChoices().camera);
  }

  /** The camera at the other side of a phone. */
  async flip() {
    if (this.off.camera || !this.may('camera')) return;
    const facing = this.backwards ? 'user' : 'environment';
    this.#drop('camera');
    try {
      await this.#reopen('camera', facing);
      keepChoices({ camera: this.track('camera')?.getSettings().deviceId ?? '' });
    } finally {
      this.#told('camera');
    }
  }

  /** The camera looks away from the person: its picture is no mirror. */
  get backwards() {
    return this.track('camera')?.getSettings().facingMode === 'environment';
  }

  /** @returns {Promise<Record<'microphone' | 'camera' | 'speaker', {id: string, label: string, chosen: boolean}[]>>} */
  async list() {
    const all = await navigator.mediaDevices?.enumerateDevices().catch(() => []) ?? [];
    const choices = readChoices();
    /**
     * @param {MediaDeviceKind} kind
     * @param {'microphone' | 'camera' | 'speaker'} name
     * @param {string} chosen
     */
    const of = (kind, name, chosen) => all.filter((one) => one.kind === kind && one.deviceId !== '').map((one, i) => ({
      id: one.deviceId,
      label: one.label || say(`${name}.numbered`, { number: i + 1 }),
      chosen: one.deviceId === chosen,
    }));
    return {
      microphone: of('audioinput', 'microphone', this.track('microphone')?.getSettings().deviceId ?? choices.microphone),
      camera: of('videoinput', 'camera', this.track('camera')?.getSettings().deviceId ?? choices.camera),
      speaker: withSystem(of('audiooutput', 'speaker', choices.speaker)),
    };
  }

  /**
   * @param {Source} source
   * @param {string} [facing]
   */
  async #reopen(source, facing = '') {
    this.problems[source] = '';
    try {
      await this.#open([source], facing);
    } catch (error) {
      this.problems[source] = ofDevice(error, source);
      throw new DeviceProblem(this.problems[source], { cause: error });
    }
  }

  /**
   * @param {Source[]} sources
   * @param {string} [facing] instead of the camera that was chosen
   */
  async #open(sources, facing = '') {
    if (!navigator.mediaDevices) throw Object.assign(new Error('not a secure page'), { name: 'InsecureError' });
    const { microphone, camera, blur } = readChoices();
    const { width, height, fps } = this.#picture;
    const stream = await navigator.mediaDevices.getUserMedia({
      audio: sources.includes('microphone') && { deviceId: wish(microphone), ...processing() },
      video: sources.includes('camera') && { ...(facing ? { facingMode: facing } : { deviceId: wish(camera) }), width: { ideal: width }, height: { ideal: height }, frameRate: { ideal: fps, max: fps }, ...(blur && { backgroundBlur: true }) },
    });
    if (this.resting) { // The call ended while the browser opened them.
      for (const track of stream.getTracks()) track.stop();
      return;
    }
    for (const track of stream.getTracks()) {
      const source = track.kind === 'audio' ? 'microphone' : 'camera';
      this.#drop(source);
      this.problems[source] = '';
      this.stream.addTrack(track);
      track.addEventListener('ended', () => this.#lost(source, track));
      if (source === 'camera') track.addEventListener('configurationchange', () => this.#reset(track));
    }
  }

  /**
   * Takes note of a device that was unplugged, or whose permission was taken back.
   * @param {Source} source
   * @param {MediaStreamTrack} track
   */
  #lost(source, track) {
    this.stream.removeTrack(track);
    this.problems[source] = say(`${source}.gone`);
    this.#told(source);
  }

  /**
   * Keeps the blur that the person switched on or off in the system's own settings.
   * @param {MediaStreamTrack} track
   */
  #reset(track) {
    if (!this.blurs || readChoices().blur === isBlurred(track)) return;
    keepChoices({ blur: isBlurred(track) });
    this.#told();
  }

  /** @param {Source} source */
  #drop(source) {
    const track = this.track(source);
    if (!track) return;
    track.stop();
    this.stream.removeTrack(track);
  }

  #mute() {
    const track = this.track('microphone');
    if (track) track.enabled = !this.off.microphone;
  }

  /** @param {boolean} asking */
  #ask(asking) {
    if (asking === this.asking) return;
    this.asking = asking;
    this.#told();
  }

  /** @param {Source} [source] */
  #told(source) {
    if (source) this.dispatchEvent(new CustomEvent('track', { detail: { source } }));
    this.dispatchEvent(new Event('change'));
  }
}

/**
 * The system's own stands first, and is used while the chosen one is gone.
 * @param {{id: string, label: string, chosen: boolean}[]} speakers
 */
function withSystem(speakers) {
  const others = speakers.filter(({ id }) => id !== 'default'); // What Chromium calls the system's.
  if (others.length === 0) return [];
  return [{ id: '', label: say('speaker.none'), chosen: !others.some(({ chosen }) => chosen) }, ...others];
}

/** @param {MediaStreamTrack} track */
const isBlurred = (track) => /** @type {Blurring} */ (track.getSettings()).backgroundBlur === true;

function processing() {
  const { echo, noise, gain } = readChoices();
  return { echoCancellation: echo, noiseSuppression: noise, autoGainControl: gain };
}

/** @param {string} id */
export const wish = (id) => (id ? { ideal: id } : undefined);

/** @param {unknown} error */
const isDenied = (error) => error instanceof DOMException && error.name === 'NotAllowedError';

/** Then the other one may be asked for alone. */
async function oneIsDenied() {
  try {
    const states = await Promise.all(['camera', 'microphone'].map((name) => navigator.permissions.query({ name: /** @type {PermissionName} */ (name) })));
    return states.filter(({ state }) => state === 'denied').length === 1;
  } catch {
    return false; // Asking again would only annoy.
  }
}
