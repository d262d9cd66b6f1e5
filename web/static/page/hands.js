// Who has raised a hand, in which order. Pure.

/** @typedef {import('../holdfast/protocol.js').RosterEntry} RosterEntry */

/**
 * Those with a raised hand, first come first, then the others as they are.
 * @template {RosterEntry} T
 * @param {T[]} roster
 * @returns {T[]}
 */
export function handsFirst(roster) {
  return [...roster].sort((a, b) => (a.handRaised || Infinity) - (b.handRaised || Infinity) || 0);
}

/**
 * 1 for who was first, 0 for a hand that is down.
 * @param {RosterEntry[]} roster
 * @returns {Map<string, number>} by peer
 */
export function places(roster) {
  return new Map(handsFirst(roster).map(({ peer, handRaised }, i) => [peer, handRaised ? i + 1 : 0]));
}
