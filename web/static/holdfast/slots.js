// The slot table: which peer's source is in which slot, as MediaStreams that stay the same object. When a source changes its slot or its
// connection, its stream gets the new track.

import { kindOf } from './screen-audio.js';

/** @typedef {import('./protocol.js').Slot} Slot */
/** @typedef {import('./protocol.js').Source} Source */
/** @typedef {import('./protocol.js').Kind} Kind */
/** @typedef {{mid: string, kind: Kind, track: MediaStreamTrack, receiver: RTCRtpReceiver}} Lane */
/**
 * `live`: a slot carries the source. `paused`: the path is too narrow for it now.
 * @typedef {{peer: string, source: Source, kind: Kind, mid: string, stream: MediaStream, live: boolean, paused: boolean}} SlotChange
 */

/**
 * @param {string} peer
 * @param {string} source
 */
export const slotKey = (peer, source) => `${peer}/${source}`;

/**
 * @param {string} key
 * @returns {import('./protocol.js').Stream}
 */
export function streamOf(key) {
  const at = key.lastIndexOf('/');
  return { peer: key.slice(0, at), source: /** @type {Source} */ (key.slice(at + 1)) };
}

export class SlotTable {
  /** @type {Slot[]} */
  #slots = [];
  /** @type {Map<string, Lane>} */
  #lanes = new Map();
  /** @type {Set<string>} */
  #used = new Set();
  /**
   * The streams by slotKey. `forget` drops those of a peer who has left.
   * @type {Map<string, MediaStream>}
   */
  #streams = new Map();
  /**
   * The slotKeys of the sources that a page was told of and has not been told to be gone.
   * @type {Set<string>}
   */
  #told = new Set();

  /** The slots as the server last sent them. */
  get slots() {
    return this.#slots.map((slot) => ({ ...slot }));
  }

  /** @returns {ReadonlySet<string>} mids of this connection that carried somebody at any time */
  get used() {
    return this.#used;
  }

  /**
   * The same object for as long as the person stays; without a track while no slot carries the source.
   * @param {string} peer
   * @param {Source} source
   */
  stream(peer, source) {
    const key = slotKey(peer, source);
    const stream = this.#streams.get(key) ?? new MediaStream();
    this.#streams.set(key, stream);
    return stream;
  }

  /**
   * After a new RTCPeerConnection: puts its tracks where the old ones were.
   * @param {Lane[]} lanes
   */
  bind(lanes) {
    this.#connect(lanes);
    for (const slot of this.#slots) {
      if (slot.peer !== '') this.#fill(slot);
    }
  }

  /**
   * Does what `bind` and `apply` do in one step, so that no stream shows another person in between.
   * @param {Lane[]} lanes
   * @param {Slot[]} slots
   */
  rebind(lanes, slots) {
    this.#connect(lanes);
    return this.apply(slots);
  }

  /**
   * Returns what changed for a page.
   * @param {Slot[]} slots
   * @returns {SlotChange[]}
   */
  apply(slots) {
    const before = this.#occupied();
    this.#slots = slots.filter((slot) => slot.mid !== '').map((slot) => ({ ...slot }));
    const after = this.#occupied();
    /** @type {SlotChange[]} */
    const changes = [];
    for (const [key, slot] of before) {
      if (after.has(key)) continue;
      const stream = this.#streams.get(key);
      if (!stream) continue;
      for (const track of stream.getTracks()) stream.removeTrack(track);
      if (this.#told.delete(key)) changes.push(this.#change(slot, stream, false));
    }
    for (const [key, slot] of after) {
      const old = this.#told.has(key) ? before.get(key) : undefined; // Who was forgotten and is back has another stream.
      this.#told.add(key);
      this.#fill(slot);
      if (old?.mid !== slot.mid || Boolean(old.paused) !== Boolean(slot.paused)) {
        changes.push(this.#change(slot, this.stream(slot.peer, /** @type {Source} */ (slot.source)), true));
      }
    }
    return changes;
  }

  /**
   * Returns what changed for a page: the table that empties the slots may come later, and says no more then.
   * @param {string} peer
   * @returns {SlotChange[]}
   */
  forget(peer) {
    const occupied = this.#occupied();
    /** @type {SlotChange[]} */
    const changes = [];
    for (const [key, stream] of this.#streams) {
      if (!key.startsWith(`${peer}/`)) continue;
      for (const track of stream.getTracks()) stream.removeTrack(track);
      this.#streams.delete(key);
      const slot = occupied.get(key);
      if (slot && this.#told.delete(key)) changes.push(this.#change(slot, stream, false));
    }
    return changes;
  }

  /**
   * Returns, by slotKey, the occupied slots that have a lane on the present connection.
   * @returns {Map<string, {slot: Slot, lane: Lane}>}
   */
  occupied() {
    const result = new Map();
    for (const [key, slot] of this.#occupied()) {
      const lane = this.#lanes.get(slot.mid);
      if (lane) result.set(key, { slot, lane });
    }
    return result;
  }

  /**
   * Whether a stream is in a slot, or a slot of its kind is free.
   * @param {import('./protocol.js').Stream} stream
   */
  hasPlace({ peer, source }) {
    const occupied = this.#occupied();
    if (occupied.has(slotKey(peer, source))) return true;
    const kind = kindOf(source);
    const count = (/** @type {Iterable<{kind: string}>} */ all) => [...all].filter((one) => one.kind === kind).length;
    return count(this.#lanes.values()) > count(occupied.values());
  }

  /** @returns {Map<string, Slot>} */
  #occupied() {
    return new Map(this.#slots.filter((slot) => slot.peer !== '' && slot.source !== '')
      .map((slot) => [slotKey(slot.peer, slot.source), slot]));
  }

  /** @param {Lane[]} lanes of a new connection */
  #connect(lanes) {
    this.#lanes = new Map(lanes.map((lane) => [lane.mid, lane]));
    this.#used.clear();
  }

  /** @param {Slot} slot */
  #fill(slot) {
    this.#used.add(slot.mid);
    const lane = this.#lanes.get(slot.mid);
    if (!lane || slot.source === '') return;
    const stream = this.stream(slot.peer, slot.source);
    if (stream.getTracks().some((track) => track === lane.track) && stream.getTracks().length === 1) return;
    for (const track of stream.getTracks()) stream.removeTrack(track);
    stream.addTrack(lane.track);
  }

  /**
   * @param {Slot} slot
   * @param {MediaStream} stream
   * @param {boolean} live
   * @returns {SlotChange}
   */
  #change({ peer, source, kind, mid, paused }, stream, live) {
    return { peer, source: /** @type {Source} */ (source), kind, mid, stream, live, paused: live && Boolean(paused) };
  }
}
