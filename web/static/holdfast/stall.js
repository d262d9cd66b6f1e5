// Does anything arrive at all? What the figures of two looks say; pure but for the clock, which is the caller's.

/** @typedef {import('./stats.js').Stats} Stats */

/** Silence after which it is said: two looks without a packet, so that a late one is none. */
const SILENT_MS = 1500;

/**
 * Whether packets are due at all: a microphone that is on is always sent, where pictures may be hidden or held back.
 * @param {import('./protocol.js').Slot[]} slots
 * @param {import('./protocol.js').RosterEntry[]} roster
 */
export function isDue(slots, roster) {
  const on = new Set(roster.filter(({ audioMuted }) => !audioMuted).map(({ peer }) => peer));
  return slots.some(({ peer, source }) => source === 'microphone' && on.has(peer));
}

/** Looked at about once a second, while no journey is under way. */
export class StallWatch {
  #media = Infinity; // so that the first look, which has nothing to compare with, sees none running
  #packets = 0;
  #running = false;
  #heardAt = 0;

  /**
   * A connection whose media ran, and to which not even control packets come any more, has stalled, if packets are due.
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

  /** Another connection, or another node: what was counted says nothing of it. */
  reset() {
    [this.#media, this.#packets, this.#running] = [Infinity, 0, false];
  }
}
