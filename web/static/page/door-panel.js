// Who may enter and who waits, in the People panel of who runs the room.

import { find, make, who } from './elements.js';
import { colour, initials } from './face.js';
import { whisper } from './notices.js';
import { waitOutside } from './sentences.js';
import { say } from './words.js';

/** @typedef {import('../holdfast/call.js').Call} Call */
/** @typedef {import('../holdfast/protocol.js').Door['line'][number]} InLine */
/** @typedef {{item: HTMLElement, letIn: HTMLButtonElement, next: HTMLElement}} Row */

/** The time between two questions for the door, because the server tells of the door only when it is asked. */
const ASK_MS = 3000;
/** While the panel is closed and nobody can be waiting, as far as is known, only one question of this many is asked. */
const SELDOM = 10;

export class DoorPanel {
  #call;
  #open = false;
  #ticks = 0;
  #lock = find('#lock', HTMLButtonElement);
  #most = find('#most', HTMLInputElement);
  #list = find('#waiting', HTMLElement);
  /** @type {Map<string, Row>} by identity; an element stays, with the focus in it */
  #rows = new Map();

  /** @param {Call} call */
  constructor(call) {
    this.#call = call;
    const { door } = call.moderation;
    const stop = new AbortController();
    const { signal } = stop;
    const timer = setInterval(() => this.#ask(), ASK_MS);
    this.#list.replaceChildren();
    this.#lock.addEventListener('click', () => door.set({ closed: !door.latest?.closed }), { signal });
    this.#most.addEventListener('change', () => {
      if (this.#most.reportValidity()) door.set({ cap: this.#most.value === '' ? -1 : Number(this.#most.value) });
    }, { signal });
    this.#most.addEventListener('keydown', ({ key }) => {
      if (key === 'Escape') this.#showCap();
    }, { signal });
    document.addEventListener('visibilitychange', () => document.hidden || door.ask(), { signal });
    call.addEventListener('door', () => this.#paint(), { signal });
    call.addEventListener('permissions', () => {
      this.#paint();
      door.ask();
    }, { signal });
    call.addEventListener('left', () => {
      clearInterval(timer);
      stop.abort();
    }, { once: true });
    this.#paint();
    this.#ask();
  }

  /** @param {boolean} open whether the People panel is */
  setOpen(open) {
    this.#open = open;
    this.#paint();
    if (open) this.#call.moderation.door.ask();
  }

  #ask() {
    const { door } = this.#call.moderation;
    const { latest } = door;
    const often = this.#open || (latest && (latest.closed || latest.cap !== undefined || latest.length > 0));
    if (document.hidden || (!often && this.#ticks++ % SELDOM !== 0)) return;
    door.ask();
  }

  #paint() {
    const { latest } = this.#call.moderation.door;
    const { closed, length, line } = latest ?? { closed: false, length: 0, line: [] };
    find('#door', HTMLElement).hidden = !latest;
    this.#lock.textContent = say(closed ? 'door.unlock' : 'door.lock');
    find('#locked', HTMLElement).hidden = !closed;
    if (document.activeElement !== this.#most) this.#showCap();
    const title = find('#waiting-title', HTMLElement);
    title.textContent = say('people.waiting', { count: length });
    title.hidden = this.#list.hidden = length === 0;
    const count = find('#waiting-count', HTMLElement);
    count.textContent = String(length);
    count.hidden = find('#waiting-word', HTMLElement).hidden = this.#open || length === 0;
    const fresh = line.filter(({ identity }) => !this.#rows.has(identity)).map(shown);
    this.#place(line);
    if (fresh.length > 0) whisper(waitOutside(fresh));
  }

  #showCap() {
    this.#most.value = String(this.#call.moderation.door.latest?.cap ?? '');
  }

  /** @param {InLine[]} line */
  #place(line) {
    const focused = document.activeElement;
    const at = [...this.#list.children].findIndex((item) => item.contains(focused));
    for (const [identity, { item }] of this.#rows) {
      if (line.some((one) => one.identity === identity)) continue;
      item.remove();
      this.#rows.delete(identity);
    }
    line.forEach((one, i) => {
      const { identity, since } = one;
      const row = this.#rows.get(identity) ?? this.#row(one);
      row.letIn.hidden = since === undefined;
      row.next.hidden = since !== undefined;
      if (this.#list.children[i] !== row.item) this.#list.insertBefore(row.item, this.#list.children[i] ?? null);
    });
    if (at < 0 || !(focused instanceof HTMLElement)) return;
    // What is moved loses the focus; what is gone leaves it to the next one.
    const heir = this.#list.children[Math.min(at, line.length - 1)]?.querySelector('button:not([hidden])') ?? this.#lock;
    if (focused.isConnected && !focused.hidden) focused.focus();
    else if (heir instanceof HTMLElement) heir.focus();
  }

  /** @param {InLine} one */
  #row(one) {
    const { door } = this.#call.moderation;
    const { identity } = one;
    const item = make('li', 'person');
    const face = make('span', 'face', initials(shown(one)));
    face.style.setProperty('--face', colour(identity));
    face.setAttribute('aria-hidden', 'true');
    const name = who(shown(one));
    name.title = identity;
    const letIn = deed('door.let', shown(one), () => door.letIn(identity));
    const next = make('span', 'ago', say('door.next'));
    const deeds = make('span', 'deeds');
    deeds.append(next, letIn, deed('door.away', shown(one), () => door.turnAway(identity)));
    const named = make('span', 'named');
    named.append(name, deeds);
    item.append(face, named);
    const row = { item, letIn, next };
    this.#rows.set(identity, row);
    return row;
  }
}

/** @param {InLine} one */
const shown = ({ name, identity }) => name || identity;

/**
 * @param {'door.let' | 'door.away'} what
 * @param {string} name
 * @param {() => void} onClick
 */
function deed(what, name, onClick) {
  const button = make('button', 'quiet', say(what));
  button.type = 'button';
  button.setAttribute('aria-label', say(`${what}.name`, { name }));
  button.addEventListener('click', onClick);
  return button;
}
