/**
 * What a look at the statistics adds. Browsers forget pairs that failed, so what was seen stays. A relay answers when it gives an address. Pure.
 * @param {Ways} before
 * @param {Map<string, any>} entries of an RTCStatsReport
 * @param {boolean} relays whether the connection has any
 * @param {ReadonlySet<string>} [former] entries that say nothing: they lead to another node, or to the same one before an ICE restart
 * @returns {Ways}
 */
export function learnWays(before: Ways, entries: Map<string, any>, relays: boolean, former?: ReadonlySet<string> | undefined): Ways;
/**
 * Returns for each way whether it answered. An undecided way counts as unanswered, but is left out when a better way works.
 * @param {Ways} ways
 * @returns {Partial<Record<Way, boolean>>}
 */
export function settledWays(ways: Ways): Partial<Record<Way, boolean>>;
/**
 * @param {{protocol: string, relayed: boolean}} path
 * @returns {Way | ''}
 */
export function wayOf({ protocol, relayed }: {
    protocol: string;
    relayed: boolean;
}): Way | '';
/** Decides when the server is told of the media's way: when it differs from the way told before, which is UDP at first. */
export class WayNews {
    /**
     * @param {Way | ''} way empty: none leads to the node
     * @param {Ways} ways
     * @returns {import('./protocol.js').MediaPath | null} null for no news
     */
    next(way: Way | '', ways: Partial<Record<Way, boolean | null>>): import('./protocol.js').MediaPath | null;
    #private;
}
/**
 * straight to the media node, or through a relay
 */
export type Way = 'UDP' | 'TCP' | 'TURN';
/**
 * those that were begun: whether they answered, null while that is open
 */
export type Ways = Partial<Record<Way, boolean | null>>;
