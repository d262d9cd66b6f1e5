import { keepChoices, readChoices } from './choices.js';
import { DeviceProblem } from './devices.js';
import { make } from './elements.js';
import { notice } from './notices.js';
import { playTestSound } from './test-sound.js';
import { say } from './words.js';

/** @typedef {import('./devices.js').Devices} Devices */
/** @typedef {'microphone' | 'camera' | 'speaker'} Kind */

export class DevicePicker {
  #devices;
  #onSpeaker;
  /** @type {Map<Kind, HTMLSelectElement>} */
  #selects = new Map();

  /**
   * @param {HTMLElement} root
   * @param {Devices} devices
   * @param {Kind[]} kinds
   * @param {(id: string) => void} [onSpeaker]
   */
  constructor(root, devices, kinds, onSpeaker = () => {}) {
    this.#devices = devices;
    this.#onSpeaker = onSpeaker;
    for (const kind of kinds) {
      const label = make('label', 'choice', say(kind));
      const select = make('select', '');
      select.name = kind;
      select.addEventListener('change', () => this.#choose(kind, select.value));
      const row = make('div', 'with');
      row.append(select, ...this.#beside(kind));
      label.append(row);
      root.append(label);
      this.#selects.set(kind, select);
    }
  }

  /**
   * Returns the buttons beside a device list: a test for speakers, and on phones a switch to the other camera.
   * @param {Kind} kind
   */
  #beside(kind) {
    if (kind === 'speaker') return [act('speaker.test', () => playTestSound(readChoices().speaker).catch(() => {}))];
    const flips = kind === 'camera' && matchMedia('(pointer: coarse)').matches;
    return flips ? [act('camera.flip', () => this.#tried(this.#devices.flip()))] : [];
  }

  async refresh() {
    const lists = await this.#devices.list();
    for (const [kind, select] of this.#selects) {
      const list = kind === 'speaker' && !('setSinkId' in HTMLMediaElement.prototype) ? [] : lists[kind];
      const options = list.map(({ id, label, chosen }) => new Option(label, id, chosen, chosen));
      if (options.length === 0) options.push(new Option(say(`${kind}.none`), ''));
      const texts = options.map(({ text, value, selected }) => `${text}\n${value}\n${selected}`).join('\n');
      if (select.dataset.list === texts) continue; // An open list shall not close.
      select.dataset.list = texts;
      select.replaceChildren(...options);
      select.disabled = list.length === 0;
    }
  }

  /**
   * @param {Kind} kind
   * @param {string} id
   */
  async #choose(kind, id) {
    if (kind === 'speaker') {
      keepChoices({ speaker: id });
      this.#onSpeaker(id);
      return;
    }
    await this.#tried(this.#devices.choose(kind, id));
  }

  /** @param {Promise<void>} change */
  async #tried(change) {
    try {
      await change;
    } catch (error) {
      if (!(error instanceof DeviceProblem)) throw error;
      notice(error.message);
    }
  }
}

/**
 * Makes a button that is disabled while its action runs.
 * @param {'speaker.test' | 'camera.flip'} what
 * @param {() => Promise<void>} onClick
 */
function act(what, onClick) {
  const button = make('button', 'quiet', say(what));
  button.type = 'button';
  button.title = say(`${what}.means`);
  button.addEventListener('click', async () => {
    button.disabled = true;
    await onClick();
    button.disabled = false;
  });
  return button;
}
