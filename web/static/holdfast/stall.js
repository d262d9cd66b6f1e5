// Does anything arrive at all? Pure.

/** @typedef {import('./stats.js').Stats} Stats */

/** Two looks, so that a late packet is none. */
const SILENT_MS = 1500;

/**
 * A microphone that is on is always sent; pictures may be hidden or held back.
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
   * Stalled: media ran, packets are due, and not even RTCP comes any more.
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

  /** Another connection, or another node. */
  reset() {
    [this.#media, this.#packets, this.#running] = [Infinity, 0, false];
  }
}
