// One RTCPeerConnection and its m-lines, in an order that never changes: microphone,
// camera, screen, then the audio slots, then the video slots. Everything is bundled onto
// one transport; candidates are not trickled (the node learns ours from the
// first check, and its own stand in the answer). There are no data channels.

import { layersFor } from './layers.js';
import { fingerprint, sessionId } from './sdp.js';
import { readStats } from './stats.js';

/** @typedef {import('./protocol.js').Source} Source */
/** @typedef {import('./slots.js').Lane} Lane */
/** @typedef {{id: number, iceServers: RTCIceServer[], audioSlots: number, videoSlots: number, simulcast: boolean}} TransportOptions */

/**
 * An offer, which may be sent before it is `set` (once, however often it is called). `prepared` says that it had been made in advance.
 * @typedef {{sdp: string, set: () => Promise<void>, prepared: boolean}} MadeOffer
 */

/** How long `disconnected` may last before it is trouble: a moment of it is normal on a busy machine. */
const DISCONNECTED_MS = 3000;

/**
 * The codecs every SFU node takes, preferred first. A short list keeps an offer with many slots small.
 * @type {Record<string, string[]>}
 */
const codecs = {
  audio: ['audio/opus'],
  video: ['video/VP8', 'video/H264', 'video/rtx'],
};

/** Event: `trouble` (ICE failed, or stayed disconnected). */
export class Transport extends EventTarget {
  #pc;
  #id;
  /** @type {Map<Source, RTCRtpTransceiver>} */
  #senders = new Map();
  /**
   * What each sender was given last.
   * @type {Map<Source, MediaStreamTrack | null>}
   */
  #given = new Map();
  /** @type {RTCRtpTransceiver[]} */
  #receivers = [];
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #disconnectedTimer;
  #broken = false;
  #seen = { dtlsState: '', certificate: '' };
  /**
   * The SSRCs of the last look.
   * @type {ReadonlySet<number>}
   */
  #ssrcs = new Set();
  #answered = { fingerprint: '', sessionId: '' };
  /**
   * How each question for statistics that is open is ended.
   * @type {Set<() => void>}
   */
  #asking = new Set();
  /**
   * The offer of the next ICE restart, made in advance.
   * @type {RTCSessionDescriptionInit | null}
   */
  #prepared = null;
  /** Grows when an offer that was made before is out of date. */
  #era = 0;

  /** @param {TransportOptions} options */
  constructor({ id, iceServers, audioSlots, videoSlots, simulcast }) {
    super();
    this.#id = id;
    this.#pc = new RTCPeerConnection({ iceServers, bundlePolicy: 'max-bundle' });
    this.#addSender('microphone', 'audio', [{ maxBitrate: 48_000 }]);
    this.#addSender('camera', 'video', simulcast ? layersFor(0, 0) : [{ maxBitrate: 1_500_000 }]);
    this.#addSender('screen', 'video', [{ maxBitrate: 2_500_000 }]);
    for (let slot = 0; slot < audioSlots; slot++) this.#addReceiver('audio');
    for (let slot = 0; slot < videoSlots; slot++) this.#addReceiver('video');
    this.#pc.addEventListener('iceconnectionstatechange', () => this.#onIceState());
  }

  /** Grows with every RTCPeerConnection of a call. */
  get id() {
    return this.#id;
  }

  get iceState() {
    return this.#pc.iceConnectionState;
  }

  /** Whether an answer was rejected: the connection stays in have-local-offer and cannot be moved. */
  get broken() {
    return this.#broken || this.#pc.signalingState === 'closed';
  }

  get localSdp() {
    return this.#pc.localDescription?.sdp ?? '';
  }

  /**
   * The own m-lines by mid; empty before the first offer.
   * @returns {Map<string, Source>}
   */
  get sources() {
    return new Map([...this.#senders].flatMap(([source, { mid }]) => (mid === null ? [] : [[mid, source]])));
  }

  /**
   * The receive m-lines; empty before the first offer.
   * @returns {Lane[]}
   */
  get lanes() {
    return this.#receivers.flatMap(({ mid, receiver }) => (mid === null
      ? []
      : [{ mid, kind: /** @type {import('./protocol.js').Kind} */ (receiver.track.kind), track: receiver.track, receiver }]));
  }

  /**
   * Makes an offer, or takes the one that was made in advance. May be called again while an answer is due: the
   * earlier offer is then void.
   * @param {{iceRestart: boolean}} options
   * @returns {Promise<MadeOffer>}
   */
  async offer({ iceRestart }) {
    const prepared = iceRestart ? this.#prepared : null;
    this.#outdate();
    const made = prepared ?? await this.#pc.createOffer({ iceRestart });
    /** @type {Promise<void> | undefined} */
    let setting;
    const set = () => (setting ??= this.#pc.setLocalDescription(made));
    if (!iceRestart) await set(); // The m-lines of a first offer get their mids by it.
    return { sdp: made.sdp ?? '', set, prepared: prepared !== null };
  }

  /**
   * Makes the offer of the next ICE restart while there is time: the browser takes some 20 ms for it on a free core, and a multiple
   * of that when everybody of a dead node restarts at once.
   */
  async prepare() {
    if (this.#prepared || this.#pc.signalingState !== 'stable') return;
    const era = this.#era;
    try {
      const made = await this.#pc.createOffer({ iceRestart: true });
      if (era === this.#era) this.#prepared = made;
    } catch {
      // Closed, or a restart will meet the same and say so.
    }
  }

  #outdate() {
    this.#era++;
    this.#prepared = null;
  }

  /**
   * Takes the answer to the last offer. Rejects when the browser does, and when
   * it would be of no use: another connection that shows the same certificate would wait for
   * a DTLS handshake that the browser does not begin.
   * @param {string} sdp
   */
  async accept(sdp) {
    const answered = { fingerprint: fingerprint(sdp), sessionId: sessionId(sdp) };
    const { fingerprint: before, sessionId: beforeId } = this.#answered;
    try {
      if (before === answered.fingerprint && before !== '' && beforeId !== answered.sessionId) {
        throw new Error('another connection with the same certificate');
      }
      await this.#pc.setRemoteDescription({ type: 'answer', sdp });
      this.#answered = answered;
    } catch (error) {
      this.#broken = true;
      throw error;
    }
  }

  /**
   * @param {Source} source
   * @param {MediaStreamTrack | null} track
   */
  async setTrack(source, track) {
    const sender = this.#senders.get(source)?.sender;
    if (!sender) return;
    this.#given.set(source, track);
    try {
      if (source === 'camera' && track) await fitLayers(sender, track);
      await sender.replaceTrack(track);
    } catch (error) {
      this.#given.delete(source);
      if (this.#pc.signalingState !== 'closed') throw error; // A closed connection sends nothing anyway.
    } finally {
      this.#outdate(); // The offer made in advance may describe other layers.
    }
  }

  /**
   * Whether this is what is sent as this source already.
   * @param {Source} source
   * @param {MediaStreamTrack | null} track
   */
  sends(source, track) {
    return this.#given.has(source) && this.#given.get(source) === track;
  }

  /** @returns {Promise<import('./stats.js').Stats>} */
  async stats() {
    const stats = readStats(/** @type {any} */ (await this.#report()));
    this.#seen = stats.transport;
    this.#ssrcs = new Set(stats.received.keys());
    return stats;
  }

  /**
   * With whom DTLS stands, as of the last look at the statistics.
   * @returns {import('./liveness.js').Security}
   */
  get security() {
    const { dtlsState, certificate } = this.#seen;
    return {
      // Not every browser has statistics of the transport.
      dtlsState: dtlsState || this.#pc.connectionState,
      iceState: this.iceState,
      certificate,
      answered: this.#answered.fingerprint,
      ssrcs: this.#ssrcs,
    };
  }

  close() {
    clearTimeout(this.#disconnectedTimer);
    this.#pc.close();
    for (const giveUp of this.#asking) giveUp();
  }

  /**
   * The browser's statistics. Of a connection that is closed there are none, and a browser may then leave
   * a question that was put before without an answer.
   * @returns {Promise<Iterable<[string, any]>>}
   */
  #report() {
    if (this.#pc.signalingState === 'closed') return Promise.resolve([]);
    return new Promise((resolve, reject) => {
      const giveUp = () => resolve([]);
      this.#asking.add(giveUp);
      this.#pc.getStats().then((report) => resolve(/** @type {any} */ (report)), reject).finally(() => this.#asking.delete(giveUp));
    });
  }

  /**
   * @param {Source} source
   * @param {'audio' | 'video'} kind
   * @param {RTCRtpEncodingParameters[]} sendEncodings
   */
  #addSender(source, kind, sendEncodings) {
    const transceiver = this.#pc.addTransceiver(kind, { direction: 'sendonly', sendEncodings });
    preferCodecs(transceiver, kind);
    this.#senders.set(source, transceiver);
  }

  /** @param {'audio' | 'video'} kind */
  #addReceiver(kind) {
    const transceiver = this.#pc.addTransceiver(kind, { direction: 'recvonly' });
    preferCodecs(transceiver, kind);
    this.#receivers.push(transceiver);
  }

  #onIceState() {
    clearTimeout(this.#disconnectedTimer);
    const trouble = () => this.dispatchEvent(new Event('trouble'));
    if (this.iceState === 'failed') trouble();
    if (this.iceState === 'disconnected') this.#disconnectedTimer = setTimeout(trouble, DISCONNECTED_MS);
  }
}

/**
 * Fits a simulcast sender's layers to the picture that it is about to send.
 * @param {RTCRtpSender} sender
 * @param {MediaStreamTrack} track
 */
async function fitLayers(sender, track) {
  const parameters = sender.getParameters();
  if (!(parameters.encodings?.length > 1)) return;
  const { width = 0, height = 0 } = track.getSettings();
  const wanted = new Map(layersFor(width, height).map((layer) => [layer.rid, layer]));
  for (const encoding of parameters.encodings) Object.assign(encoding, wanted.get(encoding.rid ?? ''));
  await sender.setParameters(parameters);
}

/**
 * @param {RTCRtpTransceiver} transceiver
 * @param {'audio' | 'video'} kind
 */
function preferCodecs(transceiver, kind) {
  const wanted = codecs[kind];
  const known = RTCRtpReceiver.getCapabilities?.(kind)?.codecs ?? [];
  const chosen = wanted.flatMap((mime) => known.filter(({ mimeType, sdpFmtpLine = '' }) => mimeType.toLowerCase() === mime.toLowerCase()
    // Of the many H264 variants only those that every SFU node names.
    && (mime !== 'video/H264' || sdpFmtpLine.includes('packetization-mode=1'))));
  if (chosen.length === 0 || !('setCodecPreferences' in transceiver)) return;
  try {
    transceiver.setCodecPreferences(chosen);
  } catch {
    // A longer offer is all that comes of it.
  }
}
