// Does anything arrive at all? What the figures of two looks say; pure but for the clock, which is the caller's.

/** @typedef {import('./stats.js').Stats} Stats */

/** Silence after which it is said: two looks without a packet, so that a late one is none. */
const SILENT_MS = 1500;

/** Looked at about once a second, while no journey is under way. */
export class StallWatch {
  #media = Infinity; // so that the first look, which has nothing to compare with, sees none running
  #packets = 0;
  #running = false;
  #heardAt = 0;

  /**
   * A connection whose media ran, and to which not even control packets come any more, has stalled. Where only
   * nobody speaks or shows anything, the node's reports still come.
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
