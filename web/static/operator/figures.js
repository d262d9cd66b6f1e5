// The cluster in six figures.

import { find, make } from '../page/elements.js';
import { heat, isGone } from './node.js';
import { bits, lasted, number, percent, say } from './words.js';

/** @typedef {{node: string, version: string, rooms: number, peers: number, sockets: number, waiting: number, egressBitsPerSecond: number, ceilingBitsPerSecond: number, online?: number, storeMs?: number}} Overview of GET /overview */

/**
 * @param {Overview} overview
 * @param {import('./node.js').Node[]} nodes
 */
export function showFigures(overview, nodes) {
  const { rooms, peers, sockets, waiting, egressBitsPerSecond, ceilingBitsPerSecond, online, storeMs } = overview;
  const part = ceilingBitsPerSecond > 0 ? egressBitsPerSecond / ceilingBitsPerSecond : 0;
  const living = (/** @type {string} */ role) => nodes.filter((node) => node.role === role && !isGone(node)).length;
  /** @type {[term: string, value: string, note: string, state: string][]} */
  const figures = [
    [say('people'), number(peers), online === undefined ? say('online.unknown') : say('online', { count: online }), ''],
    [say('rooms'), number(rooms), say('nodes.media', { count: living('sfu') }), ''],
    [say('sockets'), number(sockets), say('nodes.signaling', { count: living('signaling') }), ''],
    [say('waiting'), number(waiting), waiting > 0 ? say('waiting.note') : say('waiting.none'), waiting > 0 ? 'fair' : ''],
    [say('egress'), bits(egressBitsPerSecond), say('of.all', { part: percent(part), ceiling: bits(ceilingBitsPerSecond) }), heat(part) === 'good' ? '' : heat(part)],
    [say('store'), storeMs === undefined ? say('store.silent') : lasted(storeMs), storeMs === undefined ? say('store.silent.note') : say('store.answers'), storeMs === undefined ? 'bad' : ''],
  ];
  const list = find('#figures', HTMLElement);
  while (list.childElementCount < figures.length) {
    const box = make('div', 'figure-box');
    box.append(make('dt', ''), make('dd', ''), make('dd', 'soft'));
    list.append(box);
  }
  for (const [at, texts] of figures.entries()) {
    const box = list.children[at];
    for (const [place, element] of [...box.children].entries()) if (element.textContent !== texts[place]) element.textContent = texts[place];
    if (box instanceof HTMLElement) box.dataset.state = texts[3];
  }
  find('#answered', HTMLElement).textContent = say('answered', { node: overview.node, version: overview.version });
}
