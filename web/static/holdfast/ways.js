// By which ways media was tried, and which answered.

/** @typedef {'UDP' | 'TCP' | 'TURN'} Way straight to the media node, or through a relay */
/** @typedef {Partial<Record<Way, boolean>>} Ways those that were tried, and whether they answered */

/**
 * What a look at the statistics adds. Browsers forget pairs that failed, so what was seen stays. A relay answers when it gives an address. Pure.
 * @param {Ways} before
 * @param {Map<string, any>} entries of an RTCStatsReport
 * @param {boolean} relays whether the connection has any
 * @returns {Ways}
 */
export function learnWays(before, entries, relays) {
  /** @type {Ways} */
  const ways = relays ? { TURN: false, ...before } : { ...before };
  for (const entry of entries.values()) {
    if (entry.type === 'local-candidate' && entry.candidateType === 'relay') ways.TURN = true;
    const local = entry.type === 'candidate-pair' ? entries.get(entry.localCandidateId) : undefined;
    if (!local || local.candidateType === 'relay') continue;
    const way = local.protocol === 'tcp' ? 'TCP' : 'UDP';
    ways[way] = ways[way] === true || entry.responsesReceived > 0 || entry.state === 'succeeded';
  }
  return ways;
}

/**
 * @param {{protocol: string, relayed: boolean}} path
 * @returns {Way | ''}
 */
export function wayOf({ protocol, relayed }) {
  if (!protocol) return '';
  if (relayed) return 'TURN';
  return protocol === 'tcp' ? 'TCP' : 'UDP';
}

/** What is worth a line in the server's log: media goes by another way than before, and UDP at first. */
export class WayNews {
  /** @type {Way | ''} */
  #told = 'UDP';

  /**
   * @param {Way | ''} way empty: none leads to the node
   * @param {Ways} ways
   * @returns {import('./protocol.js').MediaPath | null} null for no news
   */
  next(way, { UDP: udp, TCP: tcp, TURN: turn }) {
    if (way === this.#told) return null;
    this.#told = way;
    return { way, udp, tcp, turn };
  }
}
