// Reads from getStats the figures that the client decides by. Pure.

/** @typedef {import('./protocol.js').Kind} Kind */
/** @typedef {{mid: string, kind: Kind, packetsReceived: number, bytesReceived: number, packetsLost: number, framesDecoded: number, framesPerSecond: number, frameWidth: number, frameHeight: number, concealedSamples: number, totalSamplesReceived: number, codec: string}} InboundStats */
/** @typedef {{mid: string, rid: string, kind: Kind, ssrc: number, rtxSsrc: number, active: boolean, packetsSent: number, bytesSent: number, framesEncoded: number, frameWidth: number, frameHeight: number, sourceWidth: number, sourceHeight: number}} OutboundStats the source's size is that of the track's pictures before they are scaled; 0 when unknown */
/** @typedef {{dtlsState: string, certificate: string, packetsReceived: number, pairChanges: number, rttMs: number, path: Path}} TransportStats */
/** @typedef {{protocol: string, relayed: boolean, address: string}} Path how packets go: `address` is the node's, or the relay's where it hides that */
/**
 * `received` counts packets by SSRC. `sentLoss`: the worst share of our packets that the node reports lost, 0 to 1.
 * @typedef {{inbound: Map<string, InboundStats>, received: Map<number, number>, outbound: OutboundStats[], transport: TransportStats, sentLoss: number}} Stats
 */

/** @param {any} value */
const number = (value) => (typeof value === 'number' && Number.isFinite(value) ? value : 0);

/** @param {any} value */
const text = (value) => (typeof value === 'string' ? value : '');

/**
 * @param {any} entry
 * @returns {InboundStats}
 */
function inboundOf(entry) {
  return {
    mid: text(entry.mid),
    kind: entry.kind,
    packetsReceived: number(entry.packetsReceived),
    bytesReceived: number(entry.bytesReceived),
    packetsLost: number(entry.packetsLost),
    framesDecoded: number(entry.framesDecoded),
    framesPerSecond: number(entry.framesPerSecond),
    frameWidth: number(entry.frameWidth),
    frameHeight: number(entry.frameHeight),
    concealedSamples: number(entry.concealedSamples),
    totalSamplesReceived: number(entry.totalSamplesReceived),
    codec: '',
  };
}

/**
 * @param {any} entry
 * @param {any} source the entry of what is encoded, if the browser has one
 * @returns {OutboundStats}
 */
function outboundOf(entry, source) {
  return {
    mid: text(entry.mid),
    rid: text(entry.rid),
    kind: entry.kind,
    ssrc: number(entry.ssrc),
    rtxSsrc: number(entry.rtxSsrc),
    active: entry.active !== false,
    packetsSent: number(entry.packetsSent),
    bytesSent: number(entry.bytesSent),
    framesEncoded: number(entry.framesEncoded),
    frameWidth: number(entry.frameWidth),
    frameHeight: number(entry.frameHeight),
    sourceWidth: number(source?.width),
    sourceHeight: number(source?.height),
  };
}

/**
 * @param {Map<string, any>} entries
 * @param {any} pair
 * @returns {Path}
 */
function pathOf(entries, pair) {
  const [local, remote] = [entries.get(pair?.localCandidateId), entries.get(pair?.remoteCandidateId)];
  const host = text(remote?.address ?? remote?.ip);
  return {
    protocol: text(local?.relayProtocol) || text(local?.protocol),
    relayed: local?.candidateType === 'relay' || remote?.candidateType === 'relay',
    address: host && `${host.includes(':') ? `[${host}]` : host}:${number(remote?.port)}`,
  };
}

/**
 * Reads a report. A moved connection keeps the old entries of its m-lines for a while, so the inbound entries of one m-line are summed.
 * @param {Iterable<[string, any]>} report an RTCStatsReport, or a list of pairs in tests
 * @returns {Stats}
 */
export function readStats(report) {
  const entries = new Map(report);
  /** @type {Stats} */
  const stats = {
    inbound: new Map(),
    received: new Map(),
    outbound: [],
    transport: { dtlsState: '', certificate: '', packetsReceived: 0, pairChanges: 0, rttMs: 0, path: pathOf(entries, undefined) },
    sentLoss: 0,
  };
  for (const entry of entries.values()) {
    if (entry.type === 'inbound-rtp') {
      const codec = text(entries.get(entry.codecId)?.mimeType).split('/')[1] ?? '';
      addInbound(stats.inbound, { ...inboundOf(entry), codec });
      stats.received.set(number(entry.ssrc), number(entry.packetsReceived));
    }
    if (entry.type === 'outbound-rtp') stats.outbound.push(outboundOf(entry, entries.get(entry.mediaSourceId)));
    if (entry.type === 'remote-inbound-rtp') stats.sentLoss = Math.max(stats.sentLoss, number(entry.fractionLost));
    if (entry.type === 'transport') {
      const certificate = entries.get(entry.remoteCertificateId);
      stats.transport = {
        dtlsState: text(entry.dtlsState),
        // The certificate has the form that sdp.fingerprint returns.
        certificate: certificate
          ? `${text(certificate.fingerprintAlgorithm).toLowerCase()} ${text(certificate.fingerprint).toUpperCase()}`
          : '',
        packetsReceived: number(entry.packetsReceived),
        pairChanges: number(entry.selectedCandidatePairChanges),
        rttMs: number(entries.get(entry.selectedCandidatePairId)?.currentRoundTripTime) * 1000,
        path: pathOf(entries, entries.get(entry.selectedCandidatePairId)),
      };
    }
  }
  return stats;
}

/**
 * @param {Map<string, InboundStats>} inbound
 * @param {InboundStats} entry
 */
function addInbound(inbound, entry) {
  const before = inbound.get(entry.mid);
  if (before) {
    entry.packetsReceived += before.packetsReceived;
    entry.bytesReceived += before.bytesReceived;
    entry.packetsLost += before.packetsLost;
    entry.framesDecoded += before.framesDecoded;
    entry.concealedSamples += before.concealedSamples;
    entry.totalSamplesReceived += before.totalSamplesReceived;
    entry.framesPerSecond ||= before.framesPerSecond;
    entry.frameWidth ||= before.frameWidth;
    entry.frameHeight ||= before.frameHeight;
    entry.codec ||= before.codec;
  }
  inbound.set(entry.mid, entry);
}
