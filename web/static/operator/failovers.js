// Gathers the cluster's events into failovers: a node's death with its evidence, the rooms that went elsewhere, and who came back.

/** @typedef {{id: string, at: string, kind: string, node?: string, role?: string, room?: string, from?: string, to?: string, cause?: string, by?: string, version?: string, peers?: number, back?: number, worstGapMs?: number, about?: string}} ClusterEvent */
/** @typedef {{room: string, to: string, at: number, backAt: number, peers: number, back: number, worstGapMs: number}} MovedRoom */
/** @typedef {{node: string, at: number, evidence: string, rooms: Map<string, MovedRoom>, gaps: {ms: number, people: number}[]}} Failover `at` is in ms since 1970; `evidence` is empty until the death is known */

/** What happens later than this has to do with another death. */
const TOGETHER_MS = 60_000;

export class Failovers {
  /** @type {Failover[]} the oldest first */
  list = [];
  #most;

  /** @param {number} most how many are kept */
  constructor(most) {
    this.#most = most;
  }

  /**
   * @param {ClusterEvent} event in the order of their ids
   * @returns {Failover | undefined} that it belongs to
   */
  add(event) {
    const at = Date.parse(event.at);
    switch (event.kind) {
      case 'node_down': {
        if (event.role === 'signaling') return undefined;
        const failover = this.#of(event.node ?? '', at, (known) => known.evidence === '') ?? this.#begin(event.node ?? '', at);
        failover.evidence = event.cause ?? '?';
        return failover;
      }
      case 'room_rehomed': {
        const failover = this.#of(event.from ?? '', at) ?? this.#begin(event.from ?? '', at);
        failover.rooms.set(event.room ?? '', { room: event.room ?? '', to: event.to ?? '', at, backAt: 0, peers: 0, back: 0, worstGapMs: 0 });
        return failover;
      }
      case 'room_back': {
        const failover = [...this.list].reverse().find(({ rooms, at: began }) => rooms.has(event.room ?? '') && at - began < TOGETHER_MS);
        const room = failover?.rooms.get(event.room ?? '');
        if (!failover || !room) return undefined;
        room.backAt = at;
        room.peers += event.peers ?? 0;
        room.back += event.back ?? 0;
        room.worstGapMs = Math.max(room.worstGapMs, event.worstGapMs ?? 0);
        failover.gaps.push({ ms: event.worstGapMs ?? 0, people: event.back ?? 0 });
        return failover;
      }
      default:
        return undefined;
    }
  }

  /**
   * @param {string} node
   * @param {number} at
   * @param {(failover: Failover) => boolean} [fits]
   */
  #of(node, at, fits = () => true) {
    return [...this.list].reverse().find((known) => known.node === node && at - known.at < TOGETHER_MS && fits(known));
  }

  /**
   * @param {string} node
   * @param {number} at
   */
  #begin(node, at) {
    /** @type {Failover} */
    const failover = { node, at, evidence: '', rooms: new Map(), gaps: [] };
    this.list.push(failover);
    if (this.list.length > this.#most) this.list.shift();
    return failover;
  }
}

/** @param {Failover} failover */
export function sum({ rooms }) {
  let [people, back, worstGapMs] = [0, 0, 0];
  for (const room of rooms.values()) {
    people += room.peers;
    back += room.back;
    worstGapMs = Math.max(worstGapMs, room.worstGapMs);
  }
  return { rooms: rooms.size, people, back, worstGapMs };
}
