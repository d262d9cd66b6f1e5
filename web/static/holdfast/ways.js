// The network ways by which media was tried (UDP, TCP, TURN), and which of them answered.

/** @typedef {'UDP' | 'TCP' | 'TURN'} Way straight to the media node, or through a relay */
/** @typedef {Partial<Record<Way, boolean | null>>} Ways those that were begun: whether they answered, null while that is open */

/** A way that has not answered this many checks counts as not working. A way that works answers the first check. */
const UNANSWERED = 3;

/**
 * What a look at the statistics adds. Browsers forget pairs that failed, so what was seen stays. A relay answers when it gives an address. Pure.
 * @param {Ways} before
 * @param {Map<string, any>} entries of an RTCStatsReport
 * @param {boolean} relays whether the connection has any
 * @param {ReadonlySet<string>} [former] entries that say nothing: they lead to another node, or to the same one before an ICE restart
 * @returns {Ways}
 */
export function learnWays(before, entries, relays, former = new Set()) {
  /** @type {Ways} */
  const ways = relays ? { TURN: null, ...before } : { ...before };
  for (const entry of entries.values()) {
    if (former.has(entry.id)) continue;
    if (entry.type === 'local-candidate' && entry.candidateType === 'relay') ways.TURN = true;
    const local = entry.type === 'candidate-pair' ? entries.get(entry.localCandidateId) : undefined;
    if (!local || local.candidateType === 'relay') continue;
    const way = local.protocol === 'tcp' ? 'TCP' : 'UDP';
    if (entry.responsesReceived > 0 || entry.state === 'succeeded') ways[way] = true;
    else if (entry.requestsSent > UNANSWERED || entry.state === 'failed') ways[way] ??= false;
    else ways[way] ??= null;
  }
  return ways;
}

/** The ways in the order in which browsers prefer them. */
const WAYS = /** @type {const} */ (['UDP', 'TCP', 'TURN']);

/**
 * Returns for each way whether it answered. An undecided way counts as unanswered, but is left out when a better way works.
 * @param {Ways} ways
 * @returns {Partial<Record<Way, boolean>>}
 */
export function settledWays(ways) {
  const best = WAYS.findIndex((way) => ways[way] === true);
  const known = WAYS.filter((way, i) => ways[way] !== undefined && (ways[way] !== null || best < 0 || i < best));
  return Object.fromEntries(known.map((way) => [way, ways[way] === true]));
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

/** Decides when the server is told of the media's way: when it differs from the way told before, which is UDP at first. */
export class WayNews {
  /** @type {Way | ''} */
  #told = 'UDP';

  /**
   * @param {Way | ''} way empty: none leads to the node
   * @param {Ways} ways
   * @returns {import('./protocol.js').MediaPath | null} null for no news
   */
  next(way, ways) {
    if (way === this.#told) return null;
    this.#told = way;
    const { UDP: udp, TCP: tcp, TURN: turn } = settledWays(ways);
    return { way, udp, tcp, turn };
  }
}
