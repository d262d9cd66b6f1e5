// The connections of a call: the present one and, for a while, the one that a live move has left. Both send the same tracks.

import { Lingering } from './lingering.js';
import { SentTracks } from './sent-tracks.js';
import { SsrcTable } from './ssrc-table.js';
import { Transport } from './transport.js';
import { settledWays } from './ways.js';

/** @typedef {import('./protocol.js').Source} Source */

/** The codec that every browser decodes (RFC 7742). */
export const COMMON_CODEC = 'VP8';

export class Connections {
  #options;
  #ice;
  #trouble;
  #made = 0;
  /** @type {Transport | null} */
  #present = null;
  #videoCodec;
  #tracks = new SentTracks();
  /** The SSRCs that the present connection sends. */
  ssrcs = new SsrcTable();
  lingering = new Lingering();
  /**
   * @param {Omit<import('./transport.js').TransportOptions, 'id' | 'iceServers' | 'screenAudio'> & {screenAudio: () => boolean}} options
   * @param {import('./ice-servers.js').IceServers} ice
   * @param {(transport: Transport) => void} trouble with a connection
   */
  constructor(options, ice, trouble) {
    this.#ice = ice;
    this.#options = options;
    this.#videoCodec = options.videoCodec;
    this.#trouble = trouble;
  }

  get present() {
    return this.#present;
  }

  set present(transport) {
    this.#present = transport;
    this.ssrcs.clear();
  }

  /** The present connection if it can be moved, otherwise null. */
  get usable() {
    return this.#present?.broken ? null : this.#present;
  }

  /**
   * Makes later connections send pictures in COMMON_CODEC. Returns the codec used before, or '' when that was COMMON_CODEC already.
   * @returns {import('./call-options.js').VideoCodec | ''}
   */
  useCommonCodec() {
    const before = this.#videoCodec ?? COMMON_CODEC;
    this.#videoCodec &&= COMMON_CODEC;
    return before === COMMON_CODEC ? '' : before;
  }

  /**
   * Returns the rows of what a connection sends, for an offer. A fresh connection has no known SSRCs yet.
   * @param {Transport} transport
   * @param {string} sdp
   * @param {boolean} fresh
   */
  senders(transport, sdp, fresh) {
    return (fresh ? new SsrcTable() : this.ssrcs).senders(sdp, transport.sources);
  }

  /**
   * Makes a connection beside the present one; both send the same tracks.
   * @param {boolean} [screenAudio] whether it has a place for the source
   */
  add(screenAudio = this.#options.screenAudio()) {
    this.#made++;
    const { audioSlots, videoSlots, simulcast, scalabilityMode, createTransform, data } = this.#options;
    const iceServers = () => this.#ice.list;
    const transport = new Transport({ id: this.#made, iceServers, screenAudio, audioSlots, videoSlots, simulcast, videoCodec: this.#videoCodec, scalabilityMode, createTransform, data });
    transport.addEventListener('trouble', () => this.#trouble(transport));
    this.#tracks.carry(transport);
    return transport;
  }

  /** @param {Transport} transport that was made last and never used */
  discard(transport) {
    this.#made--;
    transport.close();
  }

  /** Makes a connection in place of the present one. The present one stops sending, so that the browser does not encode for both. */
  replace() {
    this.#tracks.silence(this.#present);
    return this.add();
  }

  /** @param {Transport | null} transport what the page changed meanwhile is sent, too */
  carry(transport) {
    if (transport) this.#tracks.carry(transport);
  }

  /** @param {Transport} transport that a called-off attempt may have silenced */
  restore(transport) {
    this.#tracks.restore(transport);
  }

  /**
   * Sends a track for a source, on all open connections and on every later one.
   * @param {Source} source
   * @param {MediaStreamTrack | null} track
   * @param {import('./live-move.js').LiveMove | null} live
   */
  async setTrack(source, track, live) {
    this.#tracks.set(source, track);
    await Promise.all([this.#present, this.lingering, live].map((each) => each?.setTrack(source, track)));
  }

  /**
   * Whether no source of these m-lines has a track that gives media.
   * @param {string[]} mids
   */
  giveNothing(mids) {
    return this.#tracks.giveNothing(mids.map((mid) => this.#present?.sources.get(mid) ?? 'microphone'));
  }

  /** Resolves with the connection's share of `call.stats()`. */
  async stats() {
    const stats = await this.#present?.stats();
    const sources = this.#present?.sources ?? new Map();
    return {
      pcId: this.#present?.id ?? 0,
      inbound: stats?.inbound ?? new Map(),
      rttMs: stats?.transport.rttMs ?? 0,
      path: stats?.transport.path ?? { protocol: '', relayed: false, address: '' },
      ways: settledWays(this.#present?.ways ?? {}),
      sentLoss: stats?.sentLoss ?? 0,
      outbound: (stats?.outbound ?? []).map((entry) => ({ ...entry, source: sources.get(entry.mid) })),
    };
  }

  close() {
    this.lingering.close();
    this.#present?.close();
  }
}
