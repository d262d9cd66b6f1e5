// The table of nodes, media nodes first.

import { find, make } from '../page/elements.js';
import { heads } from './heads.js';
import { heat, isGone, load, shares } from './node.js';
import { Rows } from './rows.js';
import { bits, number, percent, say } from './words.js';

/** @typedef {import('./node.js').Node} Node */

const HEIGHT = 56;

/** @type {Record<string, (node: Node) => number | string>} */
const columns = { node: ({ node }) => node, load, people: ({ peers }) => peers, rooms: ({ rooms, sockets, role }) => (role === 'sfu' ? rooms : sockets), version: ({ version }) => version };

export class NodesView {
  /** @type {Node[]} */
  #all = [];
  /** @type {Node[]} */
  #shown = [];
  /** @type {Record<string, number[]>} */
  #loads = {};
  #search = find('#nodes-search', HTMLInputElement);
  #note = find('#nodes-note', HTMLElement);
  #rows;
  #sort;
  #ring;

  /**
   * @param {import('./ring-view.js').RingView} ring
   * @param {(node: Node) => void} onOpen
   */
  constructor(ring, onOpen) {
    this.#ring = ring;
    this.#sort = heads(find('#nodes-head', HTMLElement), [['node', say('node')], ['load', say('load')], ['', say('last.quarter')], ['people', say('people')], ['rooms', say('rooms.or.sockets')], ['version', say('version')]],
      { by: 'node', ascending: true }, () => this.#arrange());
    this.#search.addEventListener('input', () => this.#arrange());
    this.#rows = new Rows(find('#nodes-rows', HTMLElement), { height: HEIGHT, make: () => this.#make(onOpen), fill: (row, at) => this.#fill(row, this.#shown[at]) });
  }

  /** @param {Node[]} nodes */
  show(nodes) {
    this.#all = nodes;
    this.#arrange();
  }

  /** @param {Record<string, number[]>} loads of the last 15 minutes, in percent */
  set loads(loads) {
    this.#loads = loads;
    this.#rows.show(this.#shown.length);
  }

  /** The media nodes in sight. */
  get inSight() {
    const { first, last } = this.#rows.span;
    return this.#shown.slice(first, last).filter(({ role }) => role === 'sfu').map(({ node }) => node);
  }

  #arrange() {
    const wanted = this.#search.value.trim().toLowerCase();
    const { by, ascending } = this.#sort;
    const value = columns[by];
    const rank = (/** @type {Node} */ node) => (node.role === 'sfu' ? 0 : 1) + (isGone(node) ? 2 : 0);
    this.#shown = this.#all.filter(({ node, version }) => node.toLowerCase().includes(wanted) || version.includes(wanted));
    this.#shown.sort((a, b) => {
      const [one, other] = [value(a), value(b)];
      const order = typeof one === 'string' ? one.localeCompare(String(other), undefined, { numeric: true }) : one - Number(other);
      return rank(a) - rank(b) || (ascending ? order : -order) || a.node.localeCompare(b.node, undefined, { numeric: true });
    });
    const media = this.#all.filter((node) => node.role === 'sfu' && !isGone(node)).length;
    const gone = this.#all.filter(isGone).length;
    this.#note.textContent = [say('nodes.media', { count: media }), say('nodes.signaling', { count: this.#all.length - media - gone }), gone > 0 ? say('nodes.gone', { count: gone }) : ''].filter(Boolean).join(' · ');
    this.#rows.show(this.#shown.length);
  }

  /** @param {(node: Node) => void} onOpen */
  #make(onOpen) {
    const row = make('div', 'nodes-row');
    const first = make('div', 'first');
    const open = make('button', 'open');
    open.type = 'button';
    open.addEventListener('click', () => {
      const node = this.#shown.find(({ node: name, boot }) => `${name} ${boot}` === row.dataset.node);
      if (node) onOpen(node);
    });
    first.append(make('span', 'swatch'), open, make('span', 'chip'));
    const meter = make('div', 'meters');
    for (const kind of ['bits', 'packets']) {
      const line = make('div', `meter ${kind}`);
      line.append(make('span', 'track'), make('span', 'figure'));
      meter.append(line);
    }
    const spark = make('canvas', 'spark');
    [spark.width, spark.height] = [180, 48];
    row.append(first, meter, spark, make('span', 'num'), make('span', 'num'), make('span', 'version mono'));
    for (const cell of row.children) cell.setAttribute('role', 'cell');
    row.addEventListener('pointerenter', () => this.#ring.point(row.dataset.media ?? ''));
    row.addEventListener('pointerleave', () => this.#ring.point(''));
    return row;
  }

  /**
   * @param {HTMLElement} row
   * @param {Node} node
   */
  #fill(row, node) {
    row.dataset.node = `${node.node} ${node.boot}`;
    const { state } = node;
    const sfu = node.role === 'sfu';
    row.dataset.media = sfu ? node.node : '';
    row.dataset.state = state;
    const [first, meters, spark, people, rooms, version] = row.children;
    const [swatch, open, chip] = first.children;
    if (swatch instanceof HTMLElement) swatch.style.background = sfu ? this.#ring.colourOf(node.node) : '';
    open.textContent = node.node;
    chip.textContent = say(sfu || state !== 'up' ? `state.${state}` : 'signaling');
    const parts = shares(node);
    for (const meter of meters.children) {
      const packets = meter.classList.contains('packets');
      const part = packets ? parts.packets : parts.bits;
      const [track, figure] = meter.children;
      if (track instanceof HTMLElement) {
        track.style.setProperty('--part', String(Math.min(part, 1)));
        track.dataset.heat = heat(part);
      }
      figure.textContent = packets ? say('packets.part', { part: percent(part) }) : say('bits.part', { part: percent(part), bits: bits(node.egressBitsPerSecond) });
    }
    if (meters instanceof HTMLElement) meters.style.visibility = sfu && !isGone(node) ? '' : 'hidden';
    if (spark instanceof HTMLCanvasElement) drawSpark(spark, sfu ? this.#loads[node.node] ?? [] : []);
    people.textContent = sfu ? number(node.peers) : '';
    rooms.textContent = number(sfu ? node.rooms : node.sockets);
    if (isGone(node)) people.textContent = rooms.textContent = '';
    version.textContent = node.version;
  }
}

/**
 * @param {HTMLCanvasElement} canvas
 * @param {number[]} loads in percent; -1: not there
 */
function drawSpark(canvas, loads) {
  const key = loads.join();
  if (canvas.dataset.drawn === key) return;
  canvas.dataset.drawn = key;
  const context = canvas.getContext('2d');
  if (!context) return;
  const { width, height } = canvas;
  context.clearRect(0, 0, width, height);
  if (loads.length === 0) return;
  const most = Math.max(100, ...loads);
  const step = width / 90;
  const x = (/** @type {number} */ at) => width - (loads.length - 1 - at) * step - 2;
  const y = (/** @type {number} */ load) => height - 3 - (load / most) * (height - 6);
  context.strokeStyle = context.fillStyle = getComputedStyle(canvas).color;
  context.lineWidth = 3;
  context.lineJoin = 'round';
  context.beginPath();
  let drawing = false;
  for (const [at, load] of loads.entries()) {
    if (load >= 0 && drawing) context.lineTo(x(at), y(load));
    else if (load >= 0) context.moveTo(x(at), y(load));
    drawing = load >= 0;
  }
  context.stroke();
  const last = loads[loads.length - 1];
  if (last < 0) return;
  context.beginPath();
  context.arc(width - 4, y(last), 4, 0, 2 * Math.PI);
  context.fill();
}
