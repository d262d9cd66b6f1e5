import { keepChoices } from './choices.js';
import { DeviceProblem } from './devices.js';
import { make } from './elements.js';
import { notice } from './notices.js';
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
      if (kind === 'speaker' && !('setSinkId' in HTMLMediaElement.prototype)) continue;
      const label = make('label', 'choice', say(kind));
      const select = make('select', '');
      select.name = kind;
      select.addEventListener('change', () => this.#choose(kind, select.value));
      label.append(select);
      root.append(label);
      this.#selects.set(kind, select);
    }
  }

  async refresh() {
    const lists = await this.#devices.list();
    for (const [kind, select] of this.#selects) {
      const list = lists[kind];
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
    try {
      await this.#devices.choose(kind, id);
    } catch (error) {
      if (!(error instanceof DeviceProblem)) throw error;
      notice(error.message);
    }
  }
}
