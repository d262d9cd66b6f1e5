// The order of raised hands. Pure.

/** @typedef {import('../holdfast/protocol.js').RosterEntry} RosterEntry */

/**
 * Returns the people with a raised hand, in the order in which the hands were raised, and then the others in the roster's order.
 * @template {RosterEntry} T
 * @param {T[]} roster
 * @returns {T[]}
 */
export function handsFirst(roster) {
  return [...roster].sort((a, b) => (a.handRaised || Infinity) - (b.handRaised || Infinity) || 0);
}

/**
 * Returns each peer's place in the order of raised hands: 1 for the first, 0 for a hand that is down.
 * @param {RosterEntry[]} roster
 * @returns {Map<string, number>} by peer
 */
export function places(roster) {
  return new Map(handsFirst(roster).map(({ peer, handRaised }, i) => [peer, handRaised ? i + 1 : 0]));
}
