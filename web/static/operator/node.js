// What is known of one node.

/** @typedef {'dead' | 'left' | 'unreachable' | 'suspect' | 'draining' | 'limited' | 'up'} State */
/**
 * @typedef {{node: string, boot: string, role: 'sfu' | 'signaling', control?: string, media?: string, http?: string, version: string, state: State,
 *   at?: string, cause?: string, draining: boolean, suspect: boolean, unreachable: boolean, stalled: number, rooms: number, peers: number, sockets: number,
 *   waiting: number, egressBitsPerSecond: number, ceilingBitsPerSecond: number, egressPacketsPerSecond: number, ceilingPacketsPerSecond: number,
 *   floorBitsPerSecond: number, limitedSeconds: number, mediaTold?: string[], mediaSilent?: string[]}} Node of GET /nodes
 */

/**
 * The server says of a node that it is up, dead or left. One that is up may be in trouble.
 * @param {Node} node of GET /nodes
 * @returns {Node}
 */
export function withState(node) {
  if (node.state !== 'up') return node;
  const trouble = node.suspect ? 'suspect' : node.unreachable ? 'unreachable' : node.draining ? 'draining' : node.limitedSeconds > 0 ? 'limited' : 'up';
  return { ...node, state: trouble };
}

/** @param {Node} node */
export const isGone = (node) => node.state === 'dead' || node.state === 'left';

/**
 * The parts of both ceilings.
 * @param {Node} node
 */
export function shares(node) {
  const part = (/** @type {number} */ of, /** @type {number} */ ceiling) => (ceiling > 0 ? of / ceiling : 0);
  return { bits: part(node.egressBitsPerSecond, node.ceilingBitsPerSecond), packets: part(node.egressPacketsPerSecond, node.ceilingPacketsPerSecond) };
}

/** @param {Node} node */
export function load(node) {
  const { bits, packets } = shares(node);
  return Math.max(bits, packets);
}

/**
 * Placement passes a node over from about 0.85 on.
 * @param {number} part
 * @returns {'good' | 'fair' | 'bad'}
 */
export const heat = (part) => (part >= 0.85 ? 'bad' : part >= 0.6 ? 'fair' : 'good');

/** @type {Map<string, number>} */
const places = new Map();

/**
 * A node keeps its colour while the page is open, also when others go.
 * @param {string} node
 */
export function colour(node) {
  if (!places.has(node)) places.set(node, places.size);
  return `oklch(0.7 0.13 ${(190 + (places.get(node) ?? 0) * 137.5) % 360})`;
}
