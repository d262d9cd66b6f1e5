// The people of a roster, each with all devices. Pure.

/** @typedef {import('../holdfast/protocol.js').RosterEntry} RosterEntry */
/** @typedef {import('./quality.js').Quality} Quality */
/**
 * `peer` is the one that the person is shown by.
 * @typedef {RosterEntry & {peers: string[]}} Person
 */

/**
 * In the order of their first devices. Somebody with one open microphone is not muted.
 * @param {RosterEntry[]} roster
 * @param {string} self our own peer, which we are shown by
 * @returns {Person[]}
 */
export function persons(roster, self) {
  /** @type {Map<string, Person>} */
  const all = new Map();
  for (const entry of roster) {
    const before = all.get(entry.identity);
    if (!before) {
      all.set(entry.identity, { ...entry, peers: [entry.peer] });
      continue;
    }
    all.set(entry.identity, {
      ...(entry.peer === self ? entry : before),
      peers: [...before.peers, entry.peer],
      audioMuted: before.audioMuted && entry.audioMuted,
      videoMuted: before.videoMuted && entry.videoMuted,
      screenShared: before.screenShared || entry.screenShared,
      screenAudio: before.screenAudio || entry.screenAudio,
      handRaised: earlier(before.handRaised, entry.handRaised),
      moderator: before.moderator || entry.moderator,
    });
  }
  return [...all.values()];
}

/**
 * Returns the value of the hand that was raised first; 0 stands for a hand that is down.
 * @param {number} [a]
 * @param {number} [b]
 */
function earlier(a, b) {
  return a && b ? Math.min(a, b) : a || b || 0;
}

/**
 * Returns the worst known quality of a person's devices, or null when none is known.
 * @param {string[]} peers
 * @param {Map<string, Quality | null>} qualities
 * @returns {Quality | null}
 */
export function worst(peers, qualities) {
  const all = peers.map((peer) => qualities.get(peer));
  return (/** @type {Quality[]} */ (['lost', 'weak', 'good'])).find((quality) => all.includes(quality)) ?? null;
}
