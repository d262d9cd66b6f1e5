// What happened, the newest first: failovers as cards that grow while clients come back, everything else as a line.

import { find, make } from '../page/elements.js';
import { Failovers, sum } from './failovers.js';
import { ago, clock, lasted, listed, number, say } from './words.js';

/** @typedef {import('./failovers.js').ClusterEvent} ClusterEvent */
/** @typedef {import('./failovers.js').Failover} Failover */

/** How much is kept in the document. */
const KEPT = 200;
/** The shortest time that a card's axis shows. */
const AXIS_MS = 1000;
const ROOMS_NAMED = 3;
/** Rooms come and go all day. */
const everyday = ['room_opened', 'room_closed', 'room_back', 'room_rehomed'];

export class TimelineView {
  #list = find('#timeline', HTMLElement);
  #kinds = find('#happened-kinds', HTMLSelectElement);
  #failovers = new Failovers(KEPT);
  /** @type {Map<Failover, HTMLElement>} */
  #cards = new Map();
  #onRoom;
  #empty = make('li', 'soft empty', say('happened.nothing'));

  /** @param {(room: string) => void} onRoom */
  constructor(onRoom) {
    this.#onRoom = onRoom;
    this.#list.append(this.#empty);
    this.#kinds.addEventListener('change', () => { this.#list.dataset.kinds = this.#kinds.value; });
    this.#list.dataset.kinds = this.#kinds.value;
    setInterval(() => this.#age(), 15_000);
  }

  /** @param {ClusterEvent[]} events in the order in which they happened */
  add(events) {
    /** @type {Set<Failover>} */
    const changed = new Set();
    for (const event of events) {
      const failover = this.#failovers.add(event);
      if (failover) changed.add(failover);
      if (failover && (event.kind === 'node_down' || !everyday.includes(event.kind))) continue;
      this.#insert(this.#line(event), everyday.includes(event.kind));
    }
    for (const failover of changed) this.#draw(failover);
    this.#empty.remove();
    while (this.#list.childElementCount > KEPT) this.#list.lastElementChild?.remove();
    if (this.#list.childElementCount === 0) this.#list.append(this.#empty);
  }

  /**
   * @param {HTMLElement} item
   * @param {boolean} isEveryday
   */
  #insert(item, isEveryday) {
    item.classList.toggle('everyday', isEveryday);
    this.#list.prepend(item);
  }

  /** @param {ClusterEvent} event */
  #line(event) {
    const item = make('li', 'event');
    item.dataset.kind = event.kind;
    item.append(this.#time(Date.parse(event.at)), make('span', 'what', sentence(event)));
    return item;
  }

  /** @param {number} at */
  #time(at) {
    const time = make('time', 'soft', clock(new Date(at)));
    time.dateTime = new Date(at).toISOString();
    time.title = ago(new Date(at));
    return time;
  }

  /** @param {Failover} failover */
  #draw(failover) {
    let card = this.#cards.get(failover);
    if (!card) {
      card = make('li', 'failover');
      this.#cards.set(failover, card);
      this.#insert(card, false);
    }
    const { rooms, people, back, worstGapMs } = sum(failover);
    const header = make('div', 'failover-head');
    header.append(make('strong', '', say(failover.evidence ? 'node.died' : 'node.lost', { node: failover.node })), this.#time(failover.at));
    const outcome = make('p', 'outcome');
    outcome.dataset.state = people === 0 ? 'running' : back === people ? 'good' : 'fair';
    outcome.textContent = rooms === 0 ? say('failover.no.rooms') : people === 0 ? say('failover.running', { count: rooms }) : say('failover.back', { back, people, worst: lasted(worstGapMs) });
    card.replaceChildren(header, outcome);
    if (failover.evidence) card.append(make('p', 'soft evidence', say('failover.evidence', { evidence: failover.evidence })));
    if (rooms > 0) card.append(this.#named(failover));
    if (failover.gaps.length > 0) card.append(drawGaps(failover));
  }

  /** @param {Failover} failover */
  #named({ rooms }) {
    const line = make('p', 'soft rooms-named');
    for (const room of [...rooms.values()].slice(0, ROOMS_NAMED)) {
      const open = make('button', 'open', say('room.to', { room: room.room, node: room.to }));
      open.type = 'button';
      open.addEventListener('click', () => this.#onRoom(room.room));
      line.append(open);
    }
    if (rooms.size > ROOMS_NAMED) line.append(make('span', '', say('more', { count: rooms.size - ROOMS_NAMED })));
    return line;
  }

  #age() {
    for (const time of this.#list.querySelectorAll('time')) time.title = ago(new Date(time.dateTime));
  }
}

/**
 * The distribution of gaps: one circle for each report, as large as the people in it, on an axis of time.
 * @param {Failover} failover
 */
function drawGaps({ gaps }) {
  const longest = Math.max(AXIS_MS, ...gaps.map(({ ms }) => ms)) * 1.08;
  const figure = make('div', 'gaps');
  figure.setAttribute('role', 'img');
  figure.setAttribute('aria-label', say('gaps.label', { gaps: listed(gaps.slice(0, 8).map(({ ms }) => lasted(ms))) }));
  for (const { ms, people } of gaps) {
    const dot = make('span', 'dot');
    dot.style.setProperty('--at', String(ms / longest));
    dot.style.setProperty('--size', `${Math.min(8 + 3 * Math.sqrt(people), 26)}px`);
    dot.dataset.heat = ms < 500 ? 'good' : ms < 2000 ? 'fair' : 'bad';
    figure.append(dot);
  }
  for (const part of [0, 0.5, 1]) {
    const tick = make('span', 'tick', lasted(Math.round((longest / 1.08) * part)));
    tick.style.setProperty('--at', String(part / 1.08));
    figure.append(tick);
  }
  return figure;
}

/** @param {ClusterEvent} event */
function sentence({ kind, node = '', room = '', from = '', to = '', cause = '', by = '', version = '', peers = 0, back = 0, worstGapMs = 0 }) {
  const ordered = by ? ` (${say('by', { person: by })})` : '';
  const because = cause ? ` (${cause})` : '';
  switch (kind) {
    case 'node_up': return say('event.up', { node, version });
    case 'node_down': return say('event.down', { node }) + because;
    case 'node_back': return say('event.returned', { node });
    case 'node_left': return say('event.left', { node });
    case 'node_drains': return say('event.drains', { node }) + ordered;
    case 'node_undrains': return say('event.undrains', { node }) + ordered;
    case 'room_opened': return say('event.opened', { room, node: to || node });
    case 'room_rehomed': return say('event.rehomed', { room, from, to }) + because;
    case 'room_moved': return say('event.moved', { room, from, to }) + because + ordered;
    case 'room_back': return peers === 0 ? say('event.late', { room, back: number(back), worst: lasted(worstGapMs) }) : say('event.back', { room, back: number(back), people: number(peers), worst: lasted(worstGapMs) });
    case 'room_spread': return say('event.spread', { room, node: to }) + because;
    case 'room_gathered': return say('event.gathered', { room, node: from }) + because;
    case 'branch_promoted': return say('event.promoted', { room, node });
    case 'room_closed': return say('event.closed', { room });
    case 'move_ordered': return say('event.move', { room }) + ordered;
    case 'person_removed': return say('event.removed', { room }) + ordered;
    case 'call_ended': return say('event.ended', { room }) + ordered;
    case 'door_changed': return say('event.door', { room, state: cause }) + ordered;
    case 'node_killed': return say('event.killed', { node }) + ordered;
    case 'limit_reached': return (room || node ? say('event.limit', { who: room || node }) : say('event.limit.cluster')) + because;
    case 'store_back': return say('event.store', { node }) + because;
    default: return [kind.replaceAll('_', ' '), room, node, from, to].filter(Boolean).join(' ') + because + ordered;
  }
}
