// The table of rooms. The server searches and sorts; the page has what is in sight.

import { find, make, who } from '../page/elements.js';
import { heads } from './heads.js';
import { Rows } from './rows.js';
import { bits, number, say } from './words.js';

/** @typedef {{room: string, node: string, people: number, connected: number, egressBitsPerSecond: number, packetsForwarded: number, packetsDropped: number, branches?: string[]}} Room of GET /room-list */
/** @typedef {{rooms: Room[], found: number, total: number, at: string, unreachable: string[]}} Page */

const HEIGHT = 44;
const PAGE = 100;
const TYPED_MS = 200;

export class RoomsView {
  #server;
  #search = find('#rooms-search', HTMLInputElement);
  #note = find('#rooms-note', HTMLElement);
  #rows;
  #ring;
  #sort;
  #found = 0;
  /** @type {Map<number, Room[]>} by the number of the page */
  #pages = new Map();
  /** Which search and order #pages has. */
  #asked = '';
  #again = () => {};

  /**
   * @param {import('./server.js').Server} server
   * @param {import('./ring-view.js').RingView} ring
   * @param {(room: string) => void} onOpen
   */
  constructor(server, ring, onOpen) {
    this.#server = server;
    this.#ring = ring;
    this.#sort = heads(find('#rooms-head', HTMLElement), [['room', say('room')], ['node', say('node')], ['people', say('people')], ['egress', say('egress')], ['dropped', say('dropped')]],
      { by: 'egress', ascending: false }, () => this.#again());
    let typed = 0;
    this.#search.addEventListener('input', () => {
      clearTimeout(typed);
      typed = setTimeout(() => this.#again(), TYPED_MS);
    });
    const scroller = find('#rooms-rows', HTMLElement);
    let scrolled = 0;
    scroller.addEventListener('scroll', () => {
      if (this.#missing().length === 0) return;
      clearTimeout(scrolled);
      scrolled = setTimeout(() => this.#again(), TYPED_MS / 2);
    }, { passive: true });
    this.#rows = new Rows(scroller, { height: HEIGHT, make: () => this.#make(onOpen), fill: (row, at) => this.#fill(row, at) });
  }

  /** @param {() => void} again asks once more, soon */
  set again(again) {
    this.#again = again;
  }

  /** Asks for what is in sight. */
  async ask() {
    const wanted = `search=${encodeURIComponent(this.#search.value.trim())}&sort=${this.#sort.by}&order=${this.#sort.ascending ? 'asc' : 'desc'}`;
    if (wanted !== this.#asked) find('#rooms-rows', HTMLElement).scrollTop = 0;
    const { first, last } = this.#rows.span;
    const pages = new Set([Math.floor(first / PAGE), Math.floor(Math.max(last - 1, 0) / PAGE)]);
    /** @type {Map<number, Room[]>} */
    const fresh = new Map();
    for (const at of pages) {
      const page = /** @type {Page} */ (await this.#server.ask(`room-list?${wanted}&offset=${at * PAGE}&limit=${PAGE}`));
      fresh.set(at, page.rooms);
      this.#found = page.found;
      this.#note.textContent = [
        page.found < page.total ? say('rooms.found', { found: page.found, count: page.total }) : say('rooms.count', { count: page.total }),
        page.unreachable.length > 0 ? say('rooms.unreachable', { nodes: page.unreachable.slice(0, 3).join(', '), count: page.unreachable.length }) : '',
      ].filter(Boolean).join(' · ');
    }
    // What was seen a moment ago serves until the next turn.
    this.#pages = wanted === this.#asked ? new Map([...[...this.#pages].slice(-8), ...fresh]) : fresh;
    this.#asked = wanted;
    this.#rows.show(this.#found);
  }

  #missing() {
    const { first, last } = this.#rows.span;
    return [Math.floor(first / PAGE), Math.floor(Math.max(last - 1, 0) / PAGE)].filter((at) => !this.#pages.has(at));
  }

  /** @param {(room: string) => void} onOpen */
  #make(onOpen) {
    const row = make('div', 'rooms-row');
    const first = make('div', 'first');
    const open = make('button', 'open');
    open.type = 'button';
    open.append(who(''));
    open.addEventListener('click', () => row.dataset.room && onOpen(row.dataset.room));
    first.append(open);
    const node = make('span', 'on');
    node.append(make('span', 'swatch'), make('span', ''));
    row.append(first, node, make('span', 'num'), make('span', 'num'), make('span', 'num'));
    for (const cell of row.children) cell.setAttribute('role', 'cell');
    row.addEventListener('pointerenter', () => this.#ring.point(row.dataset.on ?? ''));
    row.addEventListener('pointerleave', () => this.#ring.point(''));
    return row;
  }

  /**
   * @param {HTMLElement} row
   * @param {number} at
   */
  #fill(row, at) {
    const room = this.#pages.get(Math.floor(at / PAGE))?.[at % PAGE];
    row.classList.toggle('awaited', !room);
    row.dataset.room = room?.room ?? '';
    row.dataset.on = room?.node ?? '';
    const [first, node, people, egress, dropped] = row.children;
    const name = first.querySelector('.who');
    if (name) name.textContent = room?.room ?? '…';
    const [swatch, on] = node.children;
    if (swatch instanceof HTMLElement) swatch.style.background = room ? this.#ring.colourOf(room.node) : '';
    on.textContent = room ? [room.node, room.branches?.length ? `+${room.branches.length}` : ''].filter(Boolean).join(' ') : '';
    people.textContent = room ? (room.connected < room.people ? say('people.of', { connected: room.connected, people: room.people }) : number(room.people)) : '';
    egress.textContent = room ? bits(room.egressBitsPerSecond) : '';
    dropped.textContent = room ? number(room.packetsDropped) : '';
  }
}
