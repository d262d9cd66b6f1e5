// Detects a connection on which no packet arrives any more. Pure.

/** @typedef {import('./stats.js').Stats} Stats */

/** How long no packet must arrive before the connection counts as stalled: two looks, so that one late packet is no stall. */
const SILENT_MS = 1500;

/**
 * Whether packets must arrive: a slot carries a microphone that is on. Pictures prove nothing, because they may be hidden or held back.
 * @param {import('./protocol.js').Slot[]} slots
 * @param {import('./protocol.js').RosterEntry[]} roster
 */
export function isDue(slots, roster) {
  const on = new Set(roster.filter(({ audioMuted }) => !audioMuted).map(({ peer }) => peer));
  return slots.some(({ peer, source }) => source === 'microphone' && on.has(peer));
}

export class StallWatch {
  #media = Infinity; // the first look has nothing to compare with
  #packets = 0;
  #running = false;
  #heardAt = 0;

  /**
   * Compares the packet counts with those of the last look. The connection is stalled when media ran before and not even RTCP arrives now.
   * @param {Stats} stats
   * @param {number} nowMs
   * @returns {number} for how many milliseconds nothing has come; 0 while it is not stalled
   */
  look(stats, nowMs) {
    let media = 0;
    for (const packets of stats.received.values()) media += packets;
    const packets = media + stats.transport.packetsReceived;
    if (packets !== this.#packets) {
      this.#running = media > this.#media;
      [this.#media, this.#packets, this.#heardAt] = [media, packets, nowMs];
      return 0;
    }
    const silentMs = nowMs - this.#heardAt;
    return this.#running && silentMs >= SILENT_MS ? Math.round(silentMs) : 0;
  }

  /** Forgets the counts, because those of another connection or node cannot be compared with them. */
  reset() {
    [this.#media, this.#packets, this.#running] = [Infinity, 0, false];
  }
}
