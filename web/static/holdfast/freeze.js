// Finds the streams that should be shown and are not, from the statistics of two looks. Pure.

import { slotKey } from './slots.js';

/** @typedef {import('./stats.js').Stats} Stats */
/** @typedef {import('./protocol.js').Slot} Slot */
/** @typedef {import('./protocol.js').Source} Source */
/** @typedef {import('./freeze-policy.js').Frozen} Frozen */

/** A look that comes this late adds no frozen time, because the page itself stood still. */
const LATE_MS = 2000;
/** With a larger share of lost packets the network path spoils a picture, and a new connection would take the same path. */
const LOSSY = 0.1;
/** How many times longer a renewal waits for a peer of whom nothing arrives, because that peer may only be late. */
const DOUBT = 4;
/** How long something that was shown says that the connection works. A silent microphone may send little. */
const RECENT_MS = 2500;
/** How many streams are remembered as shown before; the oldest is forgotten first. */
const PROVEN_LIMIT = 1000;

/**
 * Whether the person sends the source and the page wants to see it.
 * @param {{peer: string, source: string}} stream
 * @param {{roster: import('./protocol.js').RosterEntry[], wants: import('./protocol.js').Want[], hidden: boolean}} page `hidden`: a browser may not decode pictures
 */
export function isExpected({ peer, source }, { roster, wants, hidden }) {
  const entry = roster.find((one) => one.peer === peer);
  if (!entry) return false;
  if (source === 'microphone') return !entry.audioMuted;
  if (source === 'screen-audio') return Boolean(entry.screenAudio);
  if (hidden || (source === 'screen' ? !entry.screenShared : entry.videoMuted)) return false;
  return wants.length === 0 || wants.some((want) => want.peer === peer && want.source === source && (want.width > 0 || want.height > 0));
}

/** @typedef {{mid: string, frozenMs: number, suspect: boolean, figures: import('./stats.js').InboundStats | undefined}} Watched */

export class FreezeWatch {
  /** @type {Map<string, Watched>} */
  #streams = new Map();
  /**
   * The slotKeys of the streams that were shown in this call.
   * @type {Set<string>}
   */
  #proven = new Set();
  #shownAt = -Infinity;
  #lookedAt = 0;
  #packets = -1;

  /**
   * @param {object} now
   * @param {Slot[]} now.slots those that should be shown
   * @param {Stats} now.stats
   * @param {ReadonlySet<string>} now.missing by slotKey: shown before the last move and not since
   * @param {number} now.people in the room
   * @param {number} now.nowMs
   * @returns {{frozen: Frozen[], shown: Set<string>, shows: boolean, silent: boolean}} `shown` by slotKey; `shows`: whether any was lately;
   *   `silent`: nothing at all has arrived since the last look
   */
  look({ slots, stats, missing, people, nowMs }) {
    const passedMs = nowMs - this.#lookedAt;
    const stepMs = passedMs < LATE_MS ? passedMs : 0;
    this.#lookedAt = nowMs;
    let packets = stats.transport.packetsReceived;
    for (const received of stats.received.values()) packets += received;
    const silent = packets === this.#packets;
    this.#packets = packets;
    /** @type {Map<string, Watched>} */
    const streams = new Map();
    /** @type {(Frozen & {peer: string})[]} */
    const frozen = [];
    /** @type {Set<string>} */
    const present = new Set();
    /** @type {Set<string>} */
    const running = new Set();
    for (const slot of slots) {
      const key = slotKey(slot.peer, slot.source);
      const figures = stats.inbound.get(slot.mid);
      const before = this.#streams.get(key);
      const comparable = before?.mid === slot.mid;
      const { shown, arrived, sends } = progress(slot, comparable ? before.figures : figures, figures);
      if (arrived) present.add(slot.peer);
      if (shown) running.add(key);
      const moved = missing.has(key);
      // A screen that stands still or is silent may not be sent. It is suspect only when media of it arrives or it was shown before a move.
      const screen = slot.source === 'screen' || slot.source === 'screen-audio';
      const suspect = !screen || sends || moved || Boolean(before?.suspect);
      const frozenMs = shown || !before?.suspect ? 0 : before.frozenMs + stepMs;
      streams.set(key, { mid: slot.mid, frozenMs, suspect: suspect && !(shown && screen), figures });
      if (frozenMs > 0) {
        frozen.push({ peer: slot.peer, key, mid: slot.mid, frozenMs, sends, moved: moved && !screen, proven: this.#proven.has(key), doubt: 1 });
      }
    }
    this.#streams = streams;
    if (running.size > 0) this.#shownAt = nowMs;
    for (const key of running) this.#proven.add(key);
    for (const key of this.#proven) {
      if (this.#proven.size <= PROVEN_LIMIT) break;
      this.#proven.delete(key);
    }
    for (const stream of frozen) {
      if (silent || (people > 2 && !present.has(stream.peer))) stream.doubt = DOUBT;
    }
    // Without statistics of the transport RTCP is not counted, so such a browser's connection never counts as silent.
    return { frozen: frozen.map(({ peer, ...stream }) => stream), shown: running, shows: nowMs - this.#shownAt < RECENT_MS, silent: silent && stats.transport.dtlsState !== '' };
  }

  /** Forgets the last look, after a move or after a renewal for another reason. */
  reset() {
    this.#streams.clear();
    this.#packets = -1;
  }
}

/**
 * Compares two looks: whether the slot was shown, whether packets arrived, and whether media arrived over a path that is not lossy.
 * @param {Slot} slot
 * @param {import('./stats.js').InboundStats | undefined} before
 * @param {import('./stats.js').InboundStats | undefined} now
 */
function progress({ kind }, before, now) {
  if (!now || !before) return { shown: Boolean(now && now.framesDecoded > 0), arrived: Boolean(now), sends: false };
  const grown = (/** @type {'packetsReceived' | 'packetsLost' | 'bytesReceived' | 'framesDecoded' | 'totalSamplesReceived' | 'concealedSamples'} */ field) => now[field] - before[field];
  const packets = grown('packetsReceived');
  const played = grown('totalSamplesReceived');
  // A browser counts samples only while an element plays the sound.
  const shown = kind === 'video' ? grown('framesDecoded') > 0 : packets > 0 && (played <= 0 || played > grown('concealedSamples'));
  const lossy = grown('packetsLost') > LOSSY * (packets + grown('packetsLost'));
  // Padding has no payload bytes, so packets of padding alone are no media.
  return { shown, arrived: packets > 0, sends: grown('bytesReceived') > 0 && !lossy };
}
