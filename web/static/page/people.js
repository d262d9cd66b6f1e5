import { find, icon, make, who } from './elements.js';
import { colour, initials } from './face.js';
import { words } from './quality.js';

/** @typedef {import('../holdfast/call.js').Call} Call */
/** @typedef {import('./quality.js').Quality} Quality */

/**
 * @param {Call} call
 * @param {Map<string, Quality | null>} qualities
 */
export function showPeople(call, qualities) {
  const { roster } = call;
  const count = roster.length === 1 ? 'Only you' : `${roster.length} people`;
  find('#people-title', HTMLElement).textContent = count;
  find('#count', HTMLElement).textContent = count;
  find('#people-count', HTMLElement).textContent = String(roster.length);
  find('#people', HTMLElement).replaceChildren(...roster.map((entry) => {
    const self = entry.peer === call.peer;
    const name = entry.name || entry.identity;
    const item = make('li', 'person');
    const face = make('span', 'face', initials(name));
    face.style.setProperty('--face', colour(entry.identity));
    face.setAttribute('aria-hidden', 'true');
    const states = make('span', 'states');
    const [silent, dark] = self ? [call.isMuted('microphone'), call.isMuted('camera')] : [entry.audioMuted, entry.videoMuted];
    for (const [is, name, label] of /** @type {[boolean, string, string][]} */ ([
      [self ? !call.isMuted('screen') : Boolean(entry.screenShared), 'screen', 'shares the screen'],
      [silent, 'mic-off', 'muted'],
      [dark, 'camera-off', 'camera off'],
    ])) {
      if (!is) continue;
      const state = make('span', 'state');
      state.append(icon(name), make('span', 'unseen', label));
      state.title = label;
      states.append(state);
    }
    const quality = qualities.get(entry.peer) ?? null;
    if (quality) {
      const word = make('span', 'quality', words[quality]);
      word.dataset.quality = quality;
      word.title = 'Connection';
      states.prepend(word);
    }
    item.append(face, who(self ? `${name} (you)` : name), states);
    return item;
  }));
}
