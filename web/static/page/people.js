// The list of people: raised hands first, and for who runs the room a menu for each person.

import { find, icon, make, who } from './elements.js';
import { colour, initials } from './face.js';
import { handsFirst } from './hands.js';
import { Menu } from './menu.js';
import { persons, worst } from './persons.js';
import { say } from './words.js';

/** @typedef {import('../holdfast/call.js').Call} Call */
/** @typedef {import('./persons.js').Person} Person */
/** @typedef {import('./quality.js').Quality} Quality */

export class People {
  #call;
  #menu;
  #list = find('#people', HTMLElement);
  /** @type {Map<string, {item: HTMLElement, painted: string}>} by identity; an element stays, with the focus in it */
  #rows = new Map();
  /** @type {AbortController} */
  #stop = new AbortController();

  /** @param {Call} call */
  constructor(call) {
    this.#call = call;
    this.#menu = new Menu(find('#stage', HTMLElement), '', this.#stop.signal);
    this.#list.replaceChildren();
    const { signal } = this.#stop;
    find('#mute-all', HTMLButtonElement).addEventListener('click', () => call.moderation.act('mute'), { signal });
    find('#lower-all', HTMLButtonElement).addEventListener('click', () => this.#lowerAll(), { signal });
    call.addEventListener('left', () => this.#stop.abort(), { once: true });
  }

  /** @param {Map<string, Quality | null>} qualities */
  show(qualities) {
    const { moderation } = this.#call;
    const roster = this.#persons();
    const { audience } = this.#call;
    const count = say('people.count', { count: roster.length + audience });
    const hands = roster.filter(({ handRaised }) => handRaised).length;
    find('#people-title', HTMLElement).textContent = count;
    find('#count', HTMLElement).replaceChildren(count, ...(hands > 0 ? [make('span', 'hands', ` · ${say('hands', { count: hands })}`)] : []));
    find('#people-count', HTMLElement).textContent = String(roster.length + audience);
    const more = find('#audience', HTMLElement);
    more.hidden = audience === 0;
    more.textContent = audience > 0 ? say('people.audience', { count: audience }) : '';
    find('#hands', HTMLElement).textContent = hands > 0 ? say('hands', { count: hands }) : '';
    find('#hosting', HTMLElement).hidden = hands === 0 && !(moderation.allowed && roster.length > 1);
    find('#mute-all', HTMLElement).hidden = !moderation.allowed || roster.length < 2;
    find('#lower-all', HTMLElement).hidden = !moderation.allowed || hands === 0;
    const focused = document.activeElement;
    for (const [identity, { item }] of this.#rows) {
      if (roster.some((entry) => entry.identity === identity)) continue;
      item.remove();
      this.#rows.delete(identity);
    }
    handsFirst(roster).forEach((entry, i) => {
      const row = this.#row(entry, worst(entry.peers, qualities));
      if (this.#list.children[i] !== row) this.#list.insertBefore(row, this.#list.children[i] ?? null);
    });
    // What is moved loses it.
    if (focused instanceof HTMLElement && focused !== this.#list && this.#list.contains(focused)) focused.focus();
  }

  /** What we mute is shown at once. */
  #persons() {
    const call = this.#call;
    return persons(call.roster.map((entry) => (entry.peer !== call.peer ? entry : {
      ...entry, audioMuted: call.isMuted('microphone'), videoMuted: call.isMuted('camera'), screenShared: !call.isMuted('screen'), screenAudio: !call.isMuted('screen-audio'),
    })), call.peer);
  }

  /**
   * @param {Person} entry
   * @param {Quality | null} quality
   */
  #row(entry, quality) {
    const self = entry.peer === this.#call.peer;
    const [silent, dark, screen, devices] = [entry.audioMuted, entry.videoMuted, Boolean(entry.screenShared), entry.peers.length];
    const menu = this.#call.moderation.allowed && (!self || Boolean(entry.moderator));
    const painted = JSON.stringify([entry.name, entry.identity, entry.handRaised ?? 0, entry.moderator ?? false, silent, dark, screen, devices, quality, menu]);
    const known = this.#rows.get(entry.identity);
    if (known?.painted === painted) return known.item;
    const item = known?.item ?? make('li', 'person');
    const button = item.querySelector('button') ?? this.#more(entry.identity);
    const name = entry.name || entry.identity;
    button.setAttribute('aria-label', self ? say('person.own') : say('person.more', { name }));
    const face = make('span', 'face', initials(name));
    face.style.setProperty('--face', colour(entry.identity));
    face.setAttribute('aria-hidden', 'true');
    const states = make('span', 'states');
    for (const [is, name, label] of /** @type {[boolean, string, string][]} */ ([
      [Boolean(entry.handRaised), 'hand', say('person.hand')],
      [screen, 'screen', say('person.screen')],
      [silent, 'mic-off', say('person.muted')],
      [dark, 'camera-off', say('person.dark')],
    ])) {
      if (!is) continue;
      const state = make('span', `state ${name}`);
      state.append(icon(name), make('span', 'unseen', label));
      state.title = label;
      states.append(state);
    }
    const shown = make('span', 'named');
    shown.append(who(self ? say('tile.you', { name }) : name));
    const about = make('span', 'about');
    if (entry.moderator) about.append(make('span', 'host', say('person.host')));
    if (devices > 1) about.append(make('span', 'ago', say('person.devices', { count: devices })));
    if (quality === 'weak' || quality === 'lost') {
      const word = make('span', 'quality', say(`status.${quality}`));
      word.dataset.quality = quality;
      about.append(word);
    }
    if (about.childElementCount > 0) shown.append(about);
    // The button stays in the document, or it would lose the focus.
    for (const child of [...item.children]) if (child !== button) child.remove();
    if (!item.contains(button)) item.append(button);
    button.hidden = !menu;
    button.before(face, shown, states);
    this.#rows.set(entry.identity, { item, painted });
    return item;
  }

  /** @param {string} identity */
  #more(identity) {
    const button = make('button', 'more');
    button.type = 'button';
    button.append(icon('more'));
    button.title = say('more');
    button.setAttribute('aria-haspopup', 'menu');
    button.setAttribute('aria-expanded', 'false');
    button.addEventListener('click', () => this.#open(identity, button));
    return button;
  }

  /**
   * Acts are for all devices of a person.
   * @param {string} identity
   * @param {HTMLElement} button
   */
  #open(identity, button) {
    const { moderation } = this.#call;
    const entry = this.#persons().find((one) => one.identity === identity);
    if (!entry) return;
    const name = entry.name || entry.identity;
    /** @type {(label: string, act: import('../holdfast/protocol.js').Act, source?: import('../holdfast/protocol.js').Source, danger?: boolean) => import('./menu.js').Item} */
    const item = (label, act, source, danger) => ({ label, danger, onSelect: () => entry.peers.forEach((peer) => moderation.act(act, peer, source)) });
    const items = entry.peer === this.#call.peer ? [item(say('host.give.up'), 'give-up')] : [
      entry.audioMuted ? item(say('host.unmute'), 'ask-unmute') : item(say('host.mute'), 'mute'),
      ...(entry.videoMuted ? [] : [item(say('host.dark'), 'mute', 'camera')]),
      ...(entry.screenAudio ? [item(say('host.screen.sound'), 'mute', 'screen-audio')] : []),
      ...(entry.screenShared ? [item(say('host.screen'), 'mute', 'screen')] : []),
      ...(entry.handRaised ? [item(say('host.hand'), 'lower-hand')] : []),
      ...(entry.moderator ? [] : [item(say('host.grant'), 'grant')]),
      item(say('host.remove'), 'remove', undefined, true),
    ];
    this.#menu.toggle(button, name, items);
  }

  /** The act is for everybody else. */
  #lowerAll() {
    this.#call.moderation.act('lower-hand');
    this.#call.moderation.raiseHand(false);
  }
}
