// One RTCPeerConnection and its m-lines, in an order that never changes: microphone, camera, screen, its sound where the server takes
// that, audio slots, video slots. One transport, no trickled candidates (the node learns ours from the first check), no data
// channels.

import { layersFor, scalableLayers } from './layers.js';
import { fingerprint, sessionId, turnedByBrowser, withSoundRepair, withStereo } from './sdp.js';
import { readStats } from './stats.js';
import { learnWays } from './ways.js';

/** @typedef {import('./protocol.js').Source} Source */
/** @typedef {import('./slots.js').Lane} Lane */
/** @typedef {import('./call-options.js').CreateTransform} CreateTransform */
/** @typedef {import('./call-options.js').VideoCodec} VideoCodec */
/** @typedef {{id: number, iceServers: () => RTCIceServer[], screenAudio: boolean, audioSlots: number, videoSlots: number, simulcast: boolean, videoCodec?: VideoCodec, scalabilityMode?: string, createTransform?: CreateTransform}} TransportOptions */

/**
 * It may be sent before it is `set`. `prepared`: it was made in advance.
 * @typedef {{sdp: string, set: () => Promise<void>, prepared: boolean}} MadeOffer
 */

/** A moment of `disconnected` is normal on a busy machine. */
const DISCONNECTED_MS = 3000;

/**
 * Preferred first. A short list keeps an offer with many slots small.
 * @type {Record<string, string[]>}
 */
const codecs = {
  audio: ['audio/red', 'audio/opus'],
  video: ['video/VP8', 'video/H264', 'video/VP9', 'video/AV1', 'video/rtx'],
};

/**
 * Of the variants of a codec those that every media node takes.
 * @type {Record<string, RegExp>}
 */
const variants = { 'video/H264': /packetization-mode=1/, 'video/VP9': /^(?!.*profile-id=[^0])/, 'video/AV1': /^(?!.*profile=[^0])/ };

const scalableCodecs = ['video/VP9', 'video/AV1'];

/** Those whose packetizers and depacketizers take a frame for so many bytes, which a transform may have changed. */
const opaque = ['audio/opus', 'video/VP8', 'video/VP9', 'video/rtx'];

/** Event: `trouble` (ICE failed, or stayed disconnected). */
export class Transport extends EventTarget {
  #pc;
  #id;
  #videoCodec;
  #createTransform;
  #iceServers;
  #configured = '';
  /** @type {Map<Source, RTCRtpTransceiver>} */
  #senders = new Map();
  /** @type {Map<Source, MediaStreamTrack | null>} */
  #given = new Map();
  /** @type {RTCRtpTransceiver[]} */
  #receivers = [];
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #disconnectedTimer;
  #broken = false;
  #seen = { dtlsState: '', certificate: '' };
  /** @type {ReadonlySet<number>} */
  #ssrcs = new Set();
  /** @type {import('./ways.js').Ways} */
  #ways = {};
  /**
   * Of the last look at the statistics, and of the last one before the present ICE restart.
   * @type {ReadonlySet<string>}
   */
  #entries = new Set();
  /** @type {ReadonlySet<string>} */
  #former = new Set();
  #answered = { fingerprint: '', sessionId: '' };
  /**
   * Ends an open question for statistics.
   * @type {Set<() => void>}
   */
  #asking = new Set();
  /**
   * Of the next ICE restart.
   * @type {RTCSessionDescriptionInit | null}
   */
  #prepared = null;
  /** Grows when an earlier offer is out of date. */
  #era = 0;

  /** @param {TransportOptions} options */
  constructor({ id, iceServers, screenAudio, audioSlots, videoSlots, simulcast, videoCodec = 'VP8', scalabilityMode = '', createTransform }) {
    super();
    this.#id = id;
    this.#videoCodec = `video/${videoCodec}`;
    this.#createTransform = createTransform;
    this.#iceServers = iceServers;
    this.#pc = new RTCPeerConnection(this.#configuration());
    this.#addSender('microphone', 'audio', [{ maxBitrate: 48_000 }]);
    if (!this.#addScalable(scalabilityMode)) this.#addSender('camera', 'video', simulcast ? layersFor(0, 0) : [{ maxBitrate: 1_500_000 }]);
    this.#addSender('screen', 'video', [{ maxBitrate: 2_500_000 }]);
    if (screenAudio) this.#addSender('screen-audio', 'audio', [{ maxBitrate: 96_000 }]);
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

  /** An answer was rejected: the connection stays in have-local-offer and cannot be moved. */
  get broken() {
    return this.#broken || this.#pc.signalingState === 'closed';
  }

  get localSdp() {
    return this.#pc.localDescription?.sdp ?? '';
  }

  /**
   * By mid; empty before the first offer.
   * @returns {Map<string, Source>}
   */
  get sources() {
    return new Map([...this.#senders].flatMap(([source, { mid }]) => (mid === null ? [] : [[mid, source]])));
  }

  /**
   * Receive m-lines; empty before the first offer.
   * @returns {Lane[]}
   */
  get lanes() {
    return this.#receivers.flatMap(({ mid, receiver }) => (mid === null
      ? []
      : [{ mid, kind: /** @type {import('./protocol.js').Kind} */ (receiver.track.kind), track: receiver.track, receiver }]));
  }

  /**
   * Makes an offer, or takes the prepared one. An earlier unanswered offer is void then.
   * @param {{iceRestart: boolean}} options
   * @returns {Promise<MadeOffer>}
   */
  async offer({ iceRestart }) {
    const prepared = iceRestart ? this.#prepared : null;
    this.#outdate();
    if (iceRestart) this.#configure();
    if (iceRestart) this.#former = this.#entries;
    const made = prepared ?? await this.#createOffer(iceRestart);
    /** @type {Promise<void> | undefined} */
    let setting;
    const set = () => (setting ??= this.#pc.setLocalDescription(made));
    if (!iceRestart) await set(); // The m-lines of a first offer get their mids by it.
    return { sdp: turnedByBrowser(made.sdp ?? ''), set, prepared: prepared !== null };
  }

  #configuration() {
    const iceServers = this.#iceServers();
    this.#configured = JSON.stringify(iceServers);
    return /** @type {RTCConfiguration} */ ({ iceServers, bundlePolicy: 'max-bundle' });
  }

  /** Other servers are gathered from by an ICE restart only. Given earlier, they would make the next offer one. */
  #configure() {
    if (JSON.stringify(this.#iceServers()) === this.#configured) return;
    try {
      this.#pc.setConfiguration(this.#configuration());
    } catch {
      // The servers of before stay: they may serve still.
    }
  }

  /** Makes the next ICE restart's offer in advance: it takes the browser 20 ms, and more when everybody restarts at once. */
  async prepare() {
    if (this.#prepared || this.#pc.signalingState !== 'stable') return;
    const era = this.#era;
    try {
      const made = await this.#createOffer(true);
      if (era === this.#era) this.#prepared = made;
    } catch {
      // Closed, or a restart will meet the same and say so.
    }
  }

  /** @param {boolean} iceRestart */
  async #createOffer(iceRestart) {
    const { type, sdp } = await this.#pc.createOffer({ iceRestart });
    return { type, sdp: withStereo(withSoundRepair(sdp ?? '')) };
  }

  #outdate() {
    this.#era++;
    this.#prepared = null;
  }

  /**
   * Rejects when the browser does, and for another connection with the same certificate, for which no browser begins
   * a DTLS handshake.
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
      this.#ways = {};
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
      this.#outdate(); // The prepared offer may describe other layers.
    }
  }

  /**
   * @param {Source} source
   * @param {MediaStreamTrack | null} track
   */
  sends(source, track) {
    return this.#given.has(source) && this.#given.get(source) === track;
  }

  /** @param {Source} source */
  hasSender(source) {
    return this.#senders.has(source);
  }

  /** @returns {Promise<import('./stats.js').Stats>} */
  async stats() {
    const report = new Map(await this.#report());
    const stats = readStats(report);
    this.#ways = learnWays(this.#ways, report, this.#pc.getConfiguration().iceServers?.some(({ urls }) => [urls].flat().some((url) => /^turns?:/.test(url))) ?? false, this.#former);
    this.#entries = new Set(report.keys());
    this.#seen = stats.transport;
    this.#ssrcs = new Set(stats.received.keys());
    return stats;
  }

  /** To the node of the last answer, as of the last look. */
  get ways() {
    return this.#ways;
  }

  /**
   * As of the last look.
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

  /**
   * Whether the sound of others is played.
   * @param {boolean} audible
   */
  set audible(audible) {
    for (const { receiver: { track } } of this.#receivers) {
      if (track.kind === 'audio') track.enabled = audible;
    }
  }

  close() {
    clearTimeout(this.#disconnectedTimer);
    this.#pc.close();
    for (const giveUp of this.#asking) giveUp();
  }

  /**
   * Of a closed connection a browser may leave a question without an answer.
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
    // Chromium takes simulcast of these for layers of one stream otherwise.
    const apart = scalableCodecs.includes(this.#videoCodec) && sendEncodings.length > 1 ? { scalabilityMode: 'L1T3' } : {};
    const transceiver = this.#pc.addTransceiver(kind, { direction: 'sendonly', sendEncodings: sendEncodings.map((encoding) => ({ ...encoding, ...apart })) });
    this.#prefer(transceiver, kind, source === 'screen-audio' ? 'audio/red' : ''); // Music sent twice would be too much.
    transformWith(transceiver.sender, this.#createTransform?.('send', kind, null));
    this.#senders.set(source, transceiver);
  }

  /**
   * The camera as one stream in layers. False where the browser has no such mode; Firefox says nothing.
   * @param {string} scalabilityMode
   */
  #addScalable(scalabilityMode) {
    if (scalabilityMode === '' || !scalableCodecs.includes(this.#videoCodec)) return false;
    try {
      this.#addSender('camera', 'video', scalableLayers(scalabilityMode));
    } catch {
      return false;
    }
    const transceiver = this.#senders.get('camera');
    const [encoding] = /** @type {any[]} */ (transceiver?.sender.getParameters().encodings ?? []);
    if (encoding?.scalabilityMode === scalabilityMode) return true;
    transceiver?.stop();
    return false;
  }

  /** @param {'audio' | 'video'} kind */
  #addReceiver(kind) {
    const transceiver = this.#pc.addTransceiver(kind, { direction: 'recvonly' });
    this.#prefer(transceiver, kind);
    const { receiver } = transceiver;
    transformWith(receiver, this.#createTransform?.('receive', kind, receiver.track));
    this.#receivers.push(transceiver);
  }

  /**
   * @param {RTCRtpTransceiver} transceiver
   * @param {'audio' | 'video'} kind
   * @param {string} [without]
   */
  #prefer(transceiver, kind, without) {
    const usable = codecs[kind].filter((mime) => mime !== without && (!this.#createTransform || opaque.includes(mime)));
    preferCodecs(transceiver, kind, [...usable.filter((mime) => mime === this.#videoCodec), ...usable.filter((mime) => mime !== this.#videoCodec)]);
  }

  #onIceState() {
    clearTimeout(this.#disconnectedTimer);
    const trouble = () => this.dispatchEvent(new Event('trouble'));
    if (this.iceState === 'failed') trouble();
    if (this.iceState === 'disconnected') this.#disconnectedTimer = setTimeout(trouble, DISCONNECTED_MS);
  }
}

/**
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
 * @param {RTCRtpSender | RTCRtpReceiver} end
 * @param {object | null | undefined} transform
 */
function transformWith(end, transform) {
  if (transform) Object.assign(end, { transform });
}

/**
 * @param {RTCRtpTransceiver} transceiver
 * @param {'audio' | 'video'} kind
 * @param {string[]} wanted
 */
function preferCodecs(transceiver, kind, wanted) {
  const known = RTCRtpReceiver.getCapabilities?.(kind)?.codecs ?? [];
  const chosen = wanted.flatMap((mime) => known.filter(({ mimeType, sdpFmtpLine = '' }) => mimeType.toLowerCase() === mime.toLowerCase()
    && (variants[mime]?.test(sdpFmtpLine) ?? true)));
  if (chosen.length === 0 || !('setCodecPreferences' in transceiver)) return;
  try {
    transceiver.setCodecPreferences(chosen);
  } catch {
    // A longer offer is all that comes of it.
  }
}
