// What is known of one node.

/**
 * @typedef {{node: string, boot: string, role: 'sfu' | 'signaling', control?: string, media?: string, http?: string, version: string, state?: string,
 *   at?: string, cause?: string, draining: boolean, suspect: boolean, unreachable: boolean, stalled: number, rooms: number, peers: number, sockets: number,
 *   waiting: number, egressBitsPerSecond: number, ceilingBitsPerSecond: number, egressPacketsPerSecond: number, ceilingPacketsPerSecond: number,
 *   floorBitsPerSecond: number, limitedSeconds: number, mediaTold?: string[], mediaSilent?: string[]}} Node of GET /nodes
 */

/**
 * @param {Node} node
 * @returns {'dead' | 'left' | 'unreachable' | 'suspect' | 'draining' | 'limited' | 'up'}
 */
export function stateOf(node) {
  if (node.state === 'dead' || node.state === 'left') return node.state;
  if (node.suspect) return 'suspect';
  if (node.unreachable) return 'unreachable';
  if (node.draining) return 'draining';
  return node.limitedSeconds > 0 ? 'limited' : 'up';
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
