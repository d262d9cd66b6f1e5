// Draws the ring: outside, who owns each part of it; inside, each node's whole share, filled as far as its load.

import { find, make } from '../page/elements.js';
import { colour, heat, load } from './node.js';
import { number, percent, say } from './words.js';

/** @typedef {import('./node.js').Node} Node */
/** @typedef {{nodes: string[], shares: number[], owners: number[]}} Around of GET /ring */

/** With more nodes, a name and a colour of each would be seen by nobody. */
const NAMED = 12;

export class RingView {
  #canvas = find('#ring', HTMLCanvasElement);
  #legend = find('#ring-legend', HTMLElement);
  #note = find('#ring-note', HTMLElement);
  /** @type {Around} */
  #around = { nodes: [], shares: [], owners: [] };
  /** @type {Map<string, Node>} */
  #nodes = new Map();
  /** @type {{name: string, hash: number} | null} */
  #room = null;
  #pointed = '';
  #rooms = 0;

  constructor() {
    new ResizeObserver(() => this.draw()).observe(this.#canvas);
    matchMedia('(prefers-color-scheme: light)').addEventListener('change', () => this.draw());
  }

  /** @param {Around} around */
  set around(around) {
    this.#around = around;
    this.draw();
  }

  /**
   * @param {Node[]} nodes
   * @param {number} rooms
   */
  show(nodes, rooms) {
    this.#nodes = new Map(nodes.filter(({ role }) => role === 'sfu').map((node) => [node.node, node]));
    this.#rooms = rooms;
    this.#listNodes();
    this.draw();
  }

  /** @param {string} node whose parts stand out; empty: none */
  point(node) {
    if (node === this.#pointed) return;
    this.#pointed = node;
    this.draw();
  }

  /** @param {{name: string, hash: number} | null} room whose place is marked */
  mark(room) {
    this.#room = room;
    this.draw();
  }

  /** @param {string} node */
  colourOf(node) {
    const { nodes } = this.#around;
    return nodes.includes(node) && nodes.length <= NAMED ? colour(node) : '';
  }

  #listNodes() {
    const { nodes, shares } = this.#around;
    this.#note.textContent = nodes.length > 0 ? say('ring.nodes', { count: nodes.length }) : say('ring.empty');
    const told = nodes.map((node, at) => say('ring.share', { node, share: percent(shares[at]), load: percent(this.#loadOf(node)) }));
    this.#canvas.setAttribute('aria-label', told.length <= NAMED ? told.join('. ') : say('ring.nodes', { count: nodes.length }));
    if (nodes.length > NAMED) {
      this.#legend.replaceChildren();
      return;
    }
    while (this.#legend.childElementCount > nodes.length) this.#legend.lastElementChild?.remove();
    for (const [at, node] of nodes.entries()) {
      let item = this.#legend.children[at];
      if (!(item instanceof HTMLElement)) {
        item = make('li', '');
        item.append(make('span', 'swatch'), make('span', 'name'), make('span', 'soft'));
        item.addEventListener('pointerenter', ({ currentTarget }) => currentTarget instanceof HTMLElement && this.point(currentTarget.dataset.node ?? ''));
        item.addEventListener('pointerleave', () => this.point(''));
        this.#legend.append(item);
      }
      if (!(item instanceof HTMLElement)) continue;
      item.dataset.node = node;
      const [swatch, name, rest] = item.children;
      if (swatch instanceof HTMLElement) swatch.style.background = colour(node);
      name.textContent = node;
      rest.textContent = percent(shares[at]);
    }
  }

  /** @param {string} node */
  #loadOf(node) {
    const known = this.#nodes.get(node);
    return known ? load(known) : 0;
  }

  draw() {
    const context = this.#canvas.getContext('2d');
    const size = Math.min(this.#canvas.clientWidth, this.#canvas.clientHeight);
    if (!context || size < 40) return;
    const scale = window.devicePixelRatio || 1;
    const [width, height] = [Math.round(this.#canvas.clientWidth * scale), Math.round(this.#canvas.clientHeight * scale)];
    if (this.#canvas.width !== width || this.#canvas.height !== height) [this.#canvas.width, this.#canvas.height] = [width, height];
    context.setTransform(scale, 0, 0, scale, width / 2, height / 2);
    context.clearRect(-width, -height, 2 * width, 2 * height);
    const style = getComputedStyle(this.#canvas);
    const theme = (/** @type {string} */ name) => style.getPropertyValue(name).trim();
    const outer = size / 2 - 10;
    const band = Math.max(outer * 0.13, 10);
    const { nodes, shares, owners } = this.#around;
    const named = nodes.length <= NAMED;
    const tones = { good: theme('--accent'), fair: theme('--warn'), bad: theme('--danger') };
    const loads = nodes.map((node) => this.#loadOf(node));
    const paints = nodes.map((node, at) => (named ? colour(node) : tones[heat(loads[at])]));
    const shown = (/** @type {string} */ node) => this.#pointed === '' || this.#pointed === node;
    // Hashes run clockwise from the top.
    const angle = (/** @type {number} */ part) => part * 2 * Math.PI - Math.PI / 2;

    for (let from = 0; from < owners.length;) {
      let to = from + 1;
      while (to < owners.length && owners[to] === owners[from]) to++;
      context.beginPath();
      context.arc(0, 0, outer, angle(from / owners.length), angle(to / owners.length));
      context.arc(0, 0, outer - band, angle(to / owners.length), angle(from / owners.length), true);
      context.globalAlpha = shown(nodes[owners[from]]) ? (named ? 1 : 0.55 + 0.45 * (owners[from] % 2)) : 0.15;
      context.fillStyle = paints[owners[from]];
      context.fill();
      from = to;
    }

    const [inner, most] = [outer * 0.36, outer - band - 8];
    let begin = 0;
    for (const [at, node] of nodes.entries()) {
      const end = begin + shares[at];
      const gap = named ? 0.006 : 0;
      const sector = (/** @type {number} */ radius) => {
        context.beginPath();
        context.arc(0, 0, radius, angle(begin) + gap, angle(end) - gap);
        context.arc(0, 0, inner, angle(end) - gap, angle(begin) + gap, true);
        context.closePath();
      };
      context.globalAlpha = shown(node) ? 1 : 0.3;
      sector(most);
      context.fillStyle = theme('--raised');
      context.fill();
      sector(inner + (most - inner) * Math.min(Math.max(loads[at], 0.012), 1));
      context.fillStyle = heat(loads[at]) === 'good' && named ? paints[at] : tones[heat(loads[at])];
      context.fill();
      if (named) this.#label(context, theme, angle((begin + end) / 2), (inner + most) / 2, node, loads[at]);
      begin = end;
    }
    context.globalAlpha = 1;
    this.#middle(context, theme, inner);
    if (this.#room) this.#needle(context, theme, angle(this.#room.hash / 2 ** 32), inner, outer);
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {(name: string) => string} theme
   * @param {number} turn
   * @param {number} radius
   * @param {string} node
   * @param {number} part
   */
  #label(context, theme, turn, radius, node, part) {
    const [x, y] = [Math.cos(turn) * radius, Math.sin(turn) * radius];
    context.textAlign = 'center';
    context.lineJoin = 'round';
    context.lineWidth = 4;
    context.strokeStyle = theme('--surface');
    context.fillStyle = theme('--text');
    for (const [text, font, down] of /** @type {[string, string, number][]} */ ([[node, '600 12px', -3], [percent(part), '400 12px', 12]])) {
      context.font = `${font} ${getComputedStyle(this.#canvas).fontFamily}`;
      context.strokeText(text, x, y + down);
      context.fillText(text, x, y + down);
    }
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {(name: string) => string} theme
   * @param {number} radius
   */
  #middle(context, theme, radius) {
    const family = getComputedStyle(this.#canvas).fontFamily;
    context.textAlign = 'center';
    context.fillStyle = theme('--text');
    context.font = `650 ${Math.round(radius * 0.42)}px ${family}`;
    context.fillText(number(this.#rooms), 0, radius * 0.05);
    context.fillStyle = theme('--soft');
    context.font = `400 ${Math.max(Math.round(radius * 0.2), 11)}px ${family}`;
    context.fillText(say('ring.rooms', { count: this.#rooms }), 0, radius * 0.34);
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {(name: string) => string} theme
   * @param {number} turn
   * @param {number} inner
   * @param {number} outer
   */
  #needle(context, theme, turn, inner, outer) {
    const at = (/** @type {number} */ radius) => /** @type {[number, number]} */ ([Math.cos(turn) * radius, Math.sin(turn) * radius]);
    context.beginPath();
    context.moveTo(...at(inner));
    context.lineTo(...at(outer + 4));
    context.lineWidth = 2;
    context.strokeStyle = theme('--text');
    context.stroke();
    context.beginPath();
    context.arc(...at(outer + 4), 5, 0, 2 * Math.PI);
    context.fillStyle = theme('--text');
    context.fill();
  }
}
