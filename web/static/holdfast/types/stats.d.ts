/**
 * Reads a report. A moved connection keeps the old entries of its m-lines for a while, so the inbound entries of one m-line are summed.
 * @param {Iterable<[string, any]>} report an RTCStatsReport, or a list of pairs in tests
 * @returns {Stats}
 */
export function readStats(report: Iterable<[string, any]>): Stats;
export type Kind = import('./protocol.js').Kind;
export type InboundStats = {
    mid: string;
    kind: Kind;
    packetsReceived: number;
    bytesReceived: number;
    packetsLost: number;
    framesDecoded: number;
    framesPerSecond: number;
    frameWidth: number;
    frameHeight: number;
    concealedSamples: number;
    totalSamplesReceived: number;
    codec: string;
};
/**
 * the source's size is that of the track's pictures before they are scaled; 0 when unknown
 */
export type OutboundStats = {
    mid: string;
    rid: string;
    kind: Kind;
    ssrc: number;
    rtxSsrc: number;
    active: boolean;
    packetsSent: number;
    bytesSent: number;
    framesEncoded: number;
    frameWidth: number;
    frameHeight: number;
    sourceWidth: number;
    sourceHeight: number;
};
export type TransportStats = {
    dtlsState: string;
    certificate: string;
    packetsReceived: number;
    pairChanges: number;
    rttMs: number;
    path: Path;
};
/**
 * how packets go: `address` is the node's, or the relay's where it hides that
 */
export type Path = {
    protocol: string;
    relayed: boolean;
    address: string;
};
/**
 * `received` counts packets by SSRC. `sentLoss`: the worst share of our packets that the node reports lost, 0 to 1.
 */
export type Stats = {
    inbound: Map<string, InboundStats>;
    received: Map<number, number>;
    outbound: OutboundStats[];
    transport: TransportStats;
    sentLoss: number;
};
