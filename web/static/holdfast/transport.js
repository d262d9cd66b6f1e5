// One RTCPeerConnection and its m-lines, in an order that never changes: microphone, camera, screen, its sound where the server takes
// that, audio slots, video slots, and data channels where the application wants them. One transport, no trickled candidates (the node
// learns ours from the first check).

import { Checks } from './checks.js';
import { knownCodecs, preferCodecs, scalableCodecs } from './codecs.js';
import { fitLayers, layersFor, scalableLayers } from './layers.js';
import { fingerprint, namedSsrcs, sections, sessionId, shareAddress, turnedByBrowser, withoutCandidates, withSoundRepair, withStereo } from './sdp.js';
import { readStats } from './stats.js';
import { Aborted, wait } from './wait.js';
import { learnWays } from './ways.js';

/** @typedef {import('./protocol.js').Source} Source */
/** @typedef {import('./slots.js').Lane} Lane */
/** @typedef {import('./call-options.js').CreateTransform} CreateTransform */
/** @typedef {import('./call-options.js').VideoCodec} VideoCodec */
/** @typedef {{id: number, iceServers: () => RTCIceServer[], screenAudio: boolean, audioSlots: number, videoSlots: number, simulcast: boolean, videoCodec?: VideoCodec, scalabilityMode?: string, createTransform?: CreateTransform, data?: import('./call-options.js').DataChannels | null}} TransportOptions */

/**
 * An offer that may be sent to the server before `set` makes it the local description.
 * @typedef {{sdp: string, set: () => Promise<void>}} MadeOffer
 */

/** How long ICE must stay `disconnected` before it counts as trouble, because a moment of it is normal on a busy machine. */
const DISCONNECTED_MS = 3000;

/** How long to wait for the statistics to say what the connection's state says. */
const AGAIN_MS = 30;

/** Event: `trouble` (ICE failed, or stayed disconnected). */
export class Transport extends EventTarget {
  #pc;
  #checks;
  #id;
  #videoCodec;
  #createTransform;
  /** @type {Map<string, import('./codecs.js').Codecs>} */
  #codecs = new Map();
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
  /**
   * The packets received by SSRC, as of the last look at the statistics.
   * @type {ReadonlyMap<number, number>}
   */
  #received = new Map();
  /** @type {import('./ways.js').Ways} */
  #ways = {};
  /**
   * The ids of the last look's entries: of all entries, and of the candidate pairs alone.
   * @type {{all: ReadonlySet<string>, pairs: ReadonlySet<string>}}
   */
  #entries = { all: new Set(), pairs: new Set() };
  /**
   * The ids of the entries, at the last look before the present offer, that say nothing of the node that this offer leads to.
   * @type {ReadonlySet<string>}
   */
  #former = new Set();
  #relayed = false;
  /** The camera's layers that nobody shows. */
  #resting = /** @type {string[]} */ ([]);
  /**
   * The size of the camera's pictures for which its layers were set last.
   * @type {{width?: number, height?: number}}
   */
  #size = {};
  #answered = { fingerprint: '', sessionId: '', sdp: '' };
  /**
   * The SSRCs that the last answer names for the receiving m-lines. They are read in advance, because a move has no time for it.
   * @type {import('./protocol.js').UnusedSlot[]}
   */
  #slotNames = [];
  /**
   * The functions that end what waits for the browser when the connection closes.
   * @type {Set<() => void>}
   */
  #asking = new Set();
  /** The SDP of the next move's offer, made in advance; empty when there is none. */
  #prepared = '';
  /**
   * The first offer, made in advance.
   * @type {Promise<MadeOffer> | null}
   */
  #ahead = null;
  /**
   * The mids of the first offer before it is set.
   * @type {Map<RTCRtpTransceiver, string>}
   */
  #offeredMids = new Map();
  /** Grows whenever an offer that is being prepared becomes out of date. */
  #era = 0;

  /** @param {TransportOptions} options */
  constructor({ id, iceServers, screenAudio, audioSlots, videoSlots, simulcast, videoCodec = 'VP8', scalabilityMode = '', createTransform, data }) {
    super();
    this.#id = id;
    this.#videoCodec = `video/${videoCodec}`;
    this.#createTransform = createTransform;
    this.#iceServers = iceServers;
    this.#pc = new RTCPeerConnection(this.#configuration());
    this.#checks = new Checks(this.#pc);
    this.#addSender('microphone', 'audio', [{ maxBitrate: 48_000 }]);
    if (!this.#addScalable(scalabilityMode)) this.#addSender('camera', 'video', simulcast ? layersFor(0, 0) : [{ maxBitrate: 1_500_000 }]);
    this.#addSender('screen', 'video', [{ maxBitrate: 2_500_000 }]);
    if (screenAudio) this.#addSender('screen-audio', 'audio', [{ maxBitrate: 96_000 }]);
    for (let slot = 0; slot < audioSlots; slot++) this.#addReceiver('audio');
    for (let slot = 0; slot < videoSlots; slot++) this.#addReceiver('video');
    data?.adopt(this.#pc);
    this.#pc.addEventListener('iceconnectionstatechange', () => this.#onIceState());
  }

  /** Grows with every RTCPeerConnection of a call. */
  get id() {
    return this.#id;
  }

  get iceState() {
    return this.#pc.iceConnectionState;
  }

  /** Whether the connection cannot be moved: it is closed, or it rejected an answer and therefore stays in have-local-offer. */
  get broken() {
    return this.#broken || this.#pc.signalingState === 'closed';
  }

  get localSdp() {
    return this.#pc.localDescription?.sdp ?? '';
  }

  /**
   * The sources that this connection sends, by mid; empty before the first offer.
   * @returns {Map<string, Source>}
   */
  get sources() {
    return new Map([...this.#senders].flatMap(([source, transceiver]) => {
      const mid = transceiver.mid ?? this.#offeredMids.get(transceiver) ?? null;
      return mid === null ? [] : [[mid, source]];
    }));
  }

  /**
   * The receiving m-lines; empty before the first offer.
   * @returns {Lane[]}
   */
  get lanes() {
    return this.#receivers.flatMap(({ mid, receiver }) => (mid === null
      ? []
      : [{ mid, kind: /** @type {import('./protocol.js').Kind} */ (receiver.track.kind), track: receiver.track, receiver }]));
  }

  /**
   * Makes an offer, or takes the prepared one, and makes an earlier unanswered offer void. Without an ICE restart another node is reached from
   * the addresses that are known already. ICE restarts in any case when media runs over a relay and the list of ICE servers has changed.
   * @param {{iceRestart: boolean}} options
   * @returns {Promise<MadeOffer>}
   */
  async offer({ iceRestart }) {
    const ahead = this.#ahead;
    this.#ahead = null;
    if (ahead) return ahead;
    const first = this.#pc.localDescription === null;
    const restarts = !first && (iceRestart || this.#relayed && this.#hasOtherServers);
    const prepared = restarts ? '' : this.#prepared;
    this.#outdate();
    if (restarts) this.#configure();
    this.#former = restarts ? this.#entries.all : this.#entries.pairs;
    const sdp = prepared || await this.#createOffer(restarts);
    /** @type {Promise<void> | undefined} */
    let setting;
    const set = () => (setting ??= this.#pc.setLocalDescription({ type: 'offer', sdp }));
    if (first) await set(); // The m-lines of a first offer get their mids by it.
    return { sdp: withoutCandidates(turnedByBrowser(sdp)), set };
  }

  /**
   * Makes the first offer before the ICE servers are known, which the browser needs only when the offer is set. `offer` returns the same.
   * @returns {Promise<MadeOffer>}
   */
  offerAhead() {
    this.#ahead = this.#makeAhead();
    return this.#ahead;
  }

  /** @returns {Promise<MadeOffer>} */
  async #makeAhead() {
    const sdp = await this.#createOffer(false);
    const named = sections(sdp);
    const running = this.#pc.getTransceivers().filter(({ direction }) => direction !== 'stopped');
    running.forEach((transceiver, index) => this.#offeredMids.set(transceiver, named[index]?.mid ?? ''));
    /** @type {Promise<void> | undefined} */
    let setting;
    const set = () => {
      if (!setting) this.#configure();
      return (setting ??= this.#pc.setLocalDescription({ type: 'offer', sdp }));
    };
    return { sdp: withoutCandidates(turnedByBrowser(sdp)), set };
  }

  #configuration() {
    const iceServers = this.#iceServers();
    this.#configured = JSON.stringify(iceServers);
    return /** @type {RTCConfiguration} */ ({ iceServers, bundlePolicy: 'max-bundle' });
  }

  get #hasOtherServers() {
    return JSON.stringify(this.#iceServers()) !== this.#configured;
  }

  /** Gives the connection changed ICE servers. It is called before the first offer is set, and for an ICE restart, because changed servers make the next offer restart ICE. */
  #configure() {
    if (!this.#hasOtherServers) return;
    try {
      this.#pc.setConfiguration(this.#configuration());
    } catch {
      // The connection keeps its former servers, which may still work.
    }
  }

  /** Makes the offer of the next move in advance: it takes the browser 20 ms, and more when everybody moves at once. */
  async prepare() {
    if (this.#prepared || this.#pc.signalingState !== 'stable') return;
    const era = this.#era;
    try {
      const sdp = await this.#createOffer(false);
      if (era !== this.#era) return;
      this.#prepared = sdp;
      this.#slotNames = namedSsrcs(this.#answered.sdp, new Set(this.lanes.map(({ mid }) => mid)));
    } catch {
      // The connection was closed, or the next move meets the same error and reports it.
    }
  }

  /** @param {boolean} iceRestart */
  async #createOffer(iceRestart) {
    const { sdp } = await this.#pc.createOffer({ iceRestart });
    return withStereo(withSoundRepair(sdp ?? ''));
  }

  #outdate() {
    this.#era++;
    this.#prepared = '';
  }

  /**
   * Whether another node, or a restarted one, answers at the address that is in use. Chromium makes no second pair to that address before an
   * ICE restart.
   * @param {string} sdp
   */
  isTaken(sdp) {
    return fingerprint(sdp) !== this.#answered.fingerprint && shareAddress(this.#answered.sdp, sdp);
  }

  /**
   * Sets an answer. Rejects, and breaks the connection, when the browser rejects the answer. Rejects also for a new connection of the node with
   * the same certificate, because no browser begins a new DTLS handshake for the same certificate.
   * @param {string} sdp
   */
  async accept(sdp) {
    const answered = { fingerprint: fingerprint(sdp), sessionId: sessionId(sdp), sdp };
    const { fingerprint: before, sessionId: beforeId } = this.#answered;
    try {
      if (before === answered.fingerprint && before !== '' && beforeId !== answered.sessionId) {
        throw new Error('another connection with the same certificate');
      }
      if (before !== '') this.#checks.expect(sdp);
      await this.#pc.setRemoteDescription({ type: 'answer', sdp });
      this.#ways = {};
      this.#answered = answered;
      this.#slotNames = [];
      this.#onPath();
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
      if (source === 'camera' && track) await this.#whileOpen(this.#fit(sender, track.getSettings())).catch(() => {}); // Wrong layers are better than no picture.
      if (this.#given.get(source) !== track) return; // It was muted or replaced meanwhile.
      await this.#whileOpen(sender.replaceTrack(track));
    } catch (error) {
      this.#given.delete(source);
      if (this.#pc.signalingState !== 'closed') throw error; // A closed connection sends nothing anyway.
    } finally {
      this.#outdate(); // The prepared offer may describe other layers.
    }
  }

  /**
   * Stops the camera's layers that nobody shows, and begins those again that stopped before and are not named.
   * @param {{mid: string, rids: string[]}[]} resting
   */
  async rest(resting) {
    const camera = this.#senders.get('camera');
    const rids = resting.find(({ mid }) => mid === camera?.mid)?.rids ?? [];
    if (!camera || rids.join() === this.#resting.join()) return;
    this.#resting = rids;
    // The next look finds what cannot be set now.
    if (await this.#fit(camera.sender, this.#size).catch(() => false)) this.#outdate();
  }

  /** Has all of the camera's layers begin again at the next look, because another node says itself what nobody shows. */
  wakeLayers() {
    this.#resting = [];
  }

  /**
   * @param {RTCRtpSender} sender of the camera
   * @param {{width?: number, height?: number}} size
   */
  #fit(sender, size) {
    this.#size = size;
    return fitLayers(sender, size, this.#resting);
  }

  /**
   * Fits the camera's layers to the real size of its pictures. The track may have named no size when it was given, as for a virtual background.
   * The size may also have changed since, by `applyConstraints` or because a phone was turned.
   * @param {import('./stats.js').Stats} stats of this connection
   */
  async fitCamera({ outbound }) {
    const camera = this.#senders.get('camera');
    const track = this.#given.get('camera');
    if (!camera || !track) return;
    const size = sizeOf(outbound.filter(({ mid }) => mid === camera.mid), camera.sender, track);
    // The next look finds what cannot be set now.
    if (await this.#fit(camera.sender, size).catch(() => false)) this.#outdate();
  }

  /**
   * @param {Source} source
   * @param {MediaStreamTrack | null} track
   */
  sends(source, track) {
    return this.#given.has(source) && this.#given.get(source) === track;
  }

  /**
   * Returns the receiving m-lines on which nothing has arrived, with their SSRCs. A node that keeps these SSRCs spares the browser most of the
   * work that an answer costs.
   * @param {ReadonlySet<string>} used mids
   * @returns {import('./protocol.js').UnusedSlot[]}
   */
  unused(used) {
    return this.#slotNames.filter(({ mid, ssrc }) => !used.has(mid) && !this.#received.get(ssrc));
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
    const pairs = [...report.values()].filter(({ type }) => type === 'candidate-pair').map(({ id }) => id);
    this.#entries = { all: new Set(report.keys()), pairs: new Set(pairs) };
    this.#relayed = stats.transport.path.relayed;
    this.#seen = stats.transport;
    this.#received = stats.received;
    return stats;
  }

  /** The ways by which media was tried to the node of the last answer, as of the last look at the statistics. */
  get ways() {
    return this.#ways;
  }

  /**
   * Resolves when a new connection stands or has failed, and after so many milliseconds in any case. Rejects with Aborted when the signal is
   * aborted first.
   * @param {number} ms
   * @param {AbortSignal} signal
   * @returns {Promise<void>}
   */
  async changed(ms, signal) {
    const connects = () => this.#pc.connectionState === 'new' || this.#pc.connectionState === 'connecting';
    const over = new AbortController();
    const end = () => over.abort();
    signal.addEventListener('abort', end, { signal: over.signal });
    this.#pc.addEventListener('connectionstatechange', () => connects() || end(), { signal: over.signal });
    await wait(connects() ? ms : AGAIN_MS, over.signal).catch(() => {});
    end();
    if (signal.aborted) throw new Aborted();
  }

  /**
   * The state of DTLS and ICE and the certificates, as of the last look at the statistics.
   * @returns {import('./liveness.js').Security}
   */
  get security() {
    const { dtlsState, certificate } = this.#seen;
    return {
      // Not every browser has statistics of the transport; connectionState takes their place there.
      dtlsState: dtlsState || this.#pc.connectionState,
      iceState: this.iceState,
      certificate,
      answered: this.#answered.fingerprint,
      ssrcs: new Set(this.#received.keys()),
    };
  }

  /**
   * Sets whether the sound that arrives on this connection is played.
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
   * Resolves with getStats, or with an empty report once the connection is closed, because a browser may never answer for a closed connection.
   * @returns {Promise<Iterable<[string, any]>>}
   */
  #report() {
    if (this.#pc.signalingState === 'closed') return Promise.resolve([]);
    return this.#whileOpen(this.#pc.getStats()).then((report) => /** @type {any} */ (report ?? []));
  }

  /**
   * Resolves as a promise of the browser does, or with undefined once the connection is closed: the browser then leaves some promises open for ever.
   * @template T
   * @param {Promise<T>} asked
   * @returns {Promise<T | undefined>}
   */
  #whileOpen(asked) {
    return new Promise((resolve, reject) => {
      const giveUp = () => resolve(undefined);
      this.#asking.add(giveUp);
      asked.then(resolve, reject).finally(() => this.#asking.delete(giveUp));
    });
  }

  /**
   * @param {Source} source
   * @param {'audio' | 'video'} kind
   * @param {RTCRtpEncodingParameters[]} sendEncodings
   */
  #addSender(source, kind, sendEncodings) {
    // Without a scalability mode Chromium sends simulcast of VP9 and AV1 as layers of one stream.
    const apart = scalableCodecs.includes(this.#videoCodec) && sendEncodings.length > 1 ? { scalabilityMode: 'L1T3' } : {};
    const transceiver = this.#pc.addTransceiver(kind, { direction: 'sendonly', sendEncodings: sendEncodings.map((encoding) => ({ ...encoding, ...apart })) });
    this.#prefer(transceiver, kind, source === 'screen-audio' ? 'audio/red' : ''); // Music sent twice would be too much.
    transformWith(transceiver.sender, this.#createTransform?.('send', kind, null));
    this.#senders.set(source, transceiver);
  }

  /**
   * Adds the camera as one stream in layers. Returns false where the browser lacks the mode. Firefox throws no error for an unknown mode, so the
   * sender's parameters are read back.
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
    const key = `${kind} without ${without}`;
    const chosen = this.#codecs.get(key) ?? knownCodecs(kind, { first: this.#videoCodec, without, opaque: this.#createTransform !== undefined });
    this.#codecs.set(key, chosen);
    preferCodecs(transceiver, chosen);
  }

  #onPath() {
    if (this.iceState === 'connected' || this.iceState === 'completed') this.#checks.stayAlert(this.#answered.sdp);
  }

  #onIceState() {
    clearTimeout(this.#disconnectedTimer);
    this.#onPath();
    const trouble = () => this.dispatchEvent(new Event('trouble'));
    if (this.iceState === 'failed') trouble();
    if (this.iceState === 'disconnected') this.#disconnectedTimer = setTimeout(trouble, DISCONNECTED_MS);
  }
}

/**
 * Returns the size of a track's pictures before they are scaled. Firefox has no statistics of this size, so the track's settings come next. When
 * the settings name no size, the size follows from the encoded frames and their scale.
 * @param {import('./stats.js').OutboundStats[]} layers
 * @param {RTCRtpSender} sender
 * @param {MediaStreamTrack} track
 * @returns {{width?: number, height?: number}} empty when unknown
 */
function sizeOf(layers, sender, track) {
  const source = layers.find(({ sourceWidth }) => sourceWidth > 0);
  if (source) return { width: source.sourceWidth, height: source.sourceHeight };
  const { width, height } = track.getSettings();
  if (width && height) return { width, height };
  const encoded = layers.find(({ frameWidth }) => frameWidth > 0);
  const scale = sender.getParameters().encodings.find(({ rid }) => rid === encoded?.rid)?.scaleResolutionDownBy ?? 1;
  return encoded ? { width: encoded.frameWidth * scale, height: encoded.frameHeight * scale } : {};
}

/**
 * @param {RTCRtpSender | RTCRtpReceiver} end
 * @param {object | null | undefined} transform
 */
function transformWith(end, transform) {
  if (transform) Object.assign(end, { transform });
}
