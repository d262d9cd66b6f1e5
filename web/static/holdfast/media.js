// One connection at a time, the journeys that carry it from node to node, the slots, and what is learned while
// it runs.

import { emit } from './emit.js';
import { CallError } from './errors.js';
import { GapWatch } from './gap-watch.js';
import { isMeasured, isRepair } from './journey.js';
import { judge } from './liveness.js';
import { Migrations } from './migrations.js';
import { Monitor } from './monitor.js';
import { Move } from './move.js';
import { Offers } from './offers.js';
import { ReofferPolicy } from './reoffer-policy.js';
import { RestartPolicy } from './restart-policy.js';
import { SentTracks } from './sent-tracks.js';
import { SlotTable } from './slots.js';
import { SsrcTable } from './ssrc-table.js';
import { Transport } from './transport.js';
import { Aborted, wait } from './wait.js';

/** @typedef {import('./protocol.js').Source} Source */
/** @typedef {import('./protocol.js').Slot} Slot */
/** @typedef {import('./restart-policy.js').Step} Step */
/**
 * Corrupts the next n answers to restarts, for tests of the fallback.
 * @typedef {{rejectAnswers?: number}} Faults
 */
/** @typedef {{send: (message: import('./protocol.js').ClientMessage) => boolean, isOpen: () => boolean, socketOpen: (signal: AbortSignal) => Promise<void>, canMove: boolean, audioSlots: number, videoSlots: number, simulcast: boolean, videoCodec?: import('./call-options.js').VideoCodec, scalabilityMode?: string, createTransform?: import('./call-options.js').CreateTransform, faults: Faults, isExpected: (stream: import('./protocol.js').Stream) => boolean, people: () => number}} MediaOptions */
/** @typedef {import('./journey.js').Reason} Reason */
/** @typedef {import('./journey.js').Journey} Journey */

/** After the network came back, until the connection is mended. */
const SILENT_MS = 800;
/** Every browser decodes it (RFC 7742). */
const COMMON_CODEC = 'VP8';

/**
 * Events: `slot` (SlotChange), `moving` ({reason, node, epoch}), `attempt` ({reason, node, epoch, step}), `up` ({reason}),
 * `migrated` and `mended` (Journey: to another node, on the same one), `stalled` ({epoch, silentMs}), `alarm`
 * (CallError).
 */
export class Media extends EventTarget {
  #options;
  #offers;
  #slots = new SlotTable();
  /** @type {import('./protocol.js').Lack[]} */
  #lacks = [];
  #ssrcs = new SsrcTable();
  #gap;
  #monitor;
  /** @type {Transport | null} */
  #transport = null;
  /** @type {Move | null} */
  #move = null;
  #tracks = new SentTracks();
  /** @type {RTCIceServer[]} */
  #iceServers = [];
  /** @type {Reason | ''} */
  #reason = '';
  #migrations = new Migrations();
  #made = 0;
  #node = '';
  #epoch = 0;
  #reoffers = new ReofferPolicy();
  #rejectAnswers;
  #videoCodec;
  #closing = new AbortController();

  /** @param {MediaOptions} options */
  constructor(options) {
    super();
    this.#options = options;
    this.#offers = new Offers((offer) => options.send(offer));
    const { isExpected, people, canMove: prepares } = options;
    this.#gap = new GapWatch(this.#slots, isExpected);
    this.#monitor = new Monitor({
      slots: this.#slots,
      ssrcs: this.#ssrcs,
      gap: this.#gap,
      transport: () => this.#transport,
      busy: () => this.#move !== null,
      open: options.isOpen,
      isExpected,
      people,
      prepares,
      stalled: (silentMs) => emit(this, 'stalled', { epoch: this.#epoch, silentMs }),
      remedy: (remedy) => this.#remedy(remedy),
    });
    this.#rejectAnswers = options.faults.rejectAnswers ?? 0;
    this.#videoCodec = options.videoCodec;
    globalThis.addEventListener?.('online', () => this.#onOnline(), { signal: this.#closing.signal });
  }

  /** As last heard. */
  get node() {
    return this.#node;
  }

  /** Empty without a journey. */
  get journey() {
    return this.#move ? this.#reason : '';
  }

  get lacks() {
    return this.#lacks;
  }

  /** @returns {Slot[]} */
  get slots() {
    return this.#slots.slots;
  }

  /**
   * @param {string} peer
   * @param {Source} source
   */
  stream(peer, source) {
    return this.#slots.stream(peer, source);
  }

  /** @param {{node: string, epoch: number, iceServers: RTCIceServer[]}} joined */
  start({ node, epoch, iceServers }) {
    const reason = this.#transport ? 'rejoined' : 'first';
    this.#iceServers = iceServers;
    if (this.#closing.signal.aborted) return;
    if (reason === 'first') this.#monitor.run(this.#closing.signal);
    this.#go({ reason, node, epoch, canMove: false });
  }

  /** @param {{node: string, epoch: number, attempts?: number, attemptMs?: number}} order */
  restart({ node, epoch, attempts, attemptMs }) {
    const canMove = this.#options.canMove;
    this.#go({ reason: 'moved', node, epoch, canMove, attempts, attemptMs });
  }

  /**
   * On another signaling node. The media has not noticed, unless the room moved.
   * @param {import('./protocol.js').Resumed} resumed
   */
  resumed({ node, epoch, slots, mediaAlive }) {
    if (mediaAlive) {
      this.#node = node;
      this.#epoch = Math.max(this.#epoch, epoch); // Its node may hold the room under a newer pin.
      this.heardSlots(slots);
      this.#offers.resend();
    } else if (this.#move && epoch === this.#epoch) {
      this.#offers.resend(); // Already on the way to that node.
    } else if (node === this.#node && epoch === this.#epoch) {
      // The same node shows the same certificate, with which no browser redoes DTLS on a live connection.
      this.#go({ reason: 'lost', node, epoch, canMove: false });
    } else {
      this.restart({ node, epoch });
    }
  }

  /** @param {import('./protocol.js').Answer} answer */
  answered(answer) {
    this.#offers.answered(answer);
  }

  /** @param {import('./protocol.js').OfferRejected} message */
  rejected(message) {
    this.#offers.rejected(message);
  }

  /**
   * A device that gives nothing is no reason for an offer.
   * @param {import('./protocol.js').Reoffer} order
   */
  reoffer({ mids, reason, epoch }) {
    const mute = reason === 'silent' && this.#tracks.giveNothing(mids.map((mid) => this.#transport?.sources.get(mid) ?? 'microphone'));
    if (mute || this.#move || epoch < this.#epoch) return; // A journey's offer is on its way.
    if (reason !== 'codec') this.#renew('asked', this.#reoffers.next(performance.now()));
    else if (this.#videoCodec && this.#videoCodec !== COMMON_CODEC) this.#sendCommonCodec(this.#videoCodec);
  }

  /**
   * On a new connection: the node would not take another codec on this one.
   * @param {string} lacked
   */
  #sendCommonCodec(lacked) {
    this.#videoCodec = COMMON_CODEC;
    emit(this, 'alarm', new CallError('codec_lacked', { message: `Somebody here cannot show ${lacked}. Your pictures are sent in ${COMMON_CODEC} from now on.` }));
    this.#renew('asked', 'new-connection');
  }

  /**
   * @param {Slot[]} slots
   * @param {import('./protocol.js').Lack[]} [lacks]
   */
  heardSlots(slots, lacks = this.#lacks) {
    const changed = JSON.stringify(lacks) !== JSON.stringify(this.#lacks);
    this.#lacks = lacks;
    if (changed) emit(this, 'lacks', { lacks });
    for (const change of this.#slots.apply(slots)) emit(this, 'slot', change);
    this.#gap.heard(slots);
  }

  /** @param {string} peer */
  forget(peer) {
    this.#slots.forget(peer);
    this.#gap.forget(peer);
  }

  /**
   * That a muted source delivers nothing is no gap.
   * @param {string} peer
   * @param {Source} source
   */
  silenced(peer, source) {
    this.#gap.forget(peer, source);
  }

  /**
   * On this connection and every later one.
   * @param {Source} source
   * @param {MediaStreamTrack | null} track
   */
  async setTrack(source, track) {
    this.#tracks.set(source, track);
    await this.#transport?.setTrack(source, track);
  }

  close() {
    this.#closing.abort();
    this.#gap.stop();
    this.#move?.supersede();
    this.#transport?.close();
  }

  /** For `call.stats()`. */
  async stats() {
    const stats = await this.#transport?.stats();
    const sources = this.#transport?.sources ?? new Map();
    return {
      pcId: this.#transport?.id ?? 0,
      epoch: this.#epoch,
      node: this.#node,
      offersSent: this.#offers.count,
      migrations: this.#migrations.list,
      slots: this.slots,
      perSlot: Object.fromEntries(this.#slots.slots.map((slot) => [slot.mid, { ...slot, ...stats?.inbound.get(slot.mid) }])),
      rttMs: stats?.transport.rttMs ?? 0,
      path: stats?.transport.path ?? { protocol: '', relayed: false, address: '' },
      sentLoss: stats?.sentLoss ?? 0,
      outbound: (stats?.outbound ?? []).map((entry) => ({ ...entry, source: sources.get(entry.mid) })),
    };
  }

  /** @param {{reason: Reason, node: string, epoch: number, canMove: boolean, attempts?: number, attemptMs?: number}} order */
  async #go({ reason, node, epoch, canMove, attempts, attemptMs }) {
    this.#move?.supersede();
    this.#gap.stop();
    this.#node = node;
    this.#epoch = epoch;
    this.#reason = reason;
    this.#migrations.begin(reason);
    const frozen = new Set(this.#monitor.frozen);
    if (!isRepair(reason)) this.#monitor.reset();
    const before = this.#transport;
    const current = before?.broken ? null : before;
    const policy = new RestartPolicy({ canMove: canMove && current !== null, attempts, attemptMs });
    const move = new Move(policy, current, this.#surroundings(reason));
    this.#move = move;
    if (current) this.#tracks.restore(current);
    emit(this, 'moving', { reason, node, epoch });
    try {
      const moving = move.run();
      if (isMeasured(reason)) this.#gap.begin(frozen);
      const { step, answer } = await moving;
      this.#node = answer.node;
      this.#epoch = Math.max(this.#epoch, answer.epoch);
      this.#move = null;
      emit(this, 'up', { reason });
      if (isMeasured(reason)) this.#report(step);
    } catch (error) {
      if (this.#move === move) this.#move = null;
      if (!(error instanceof Aborted)) emit(this, 'alarm', new CallError('media_unreachable', { cause: error, retryable: true }));
    }
  }

  /**
   * @param {Reason} reason
   * @returns {import('./move.js').Surroundings}
   */
  #surroundings(reason) {
    return {
      make: () => this.#make(),
      socketOpen: this.#options.socketOpen,
      ask: (transport, sdp, fresh, signal) => {
        const senders = (fresh ? new SsrcTable() : this.#ssrcs).senders(sdp, transport.sources);
        return this.#offers.ask({ sdp, fresh, senders, slots: this.slots }, signal);
      },
      mediaExpected: () => (reason === 'moved' || reason === 'lost') && this.#gap.expects,
      began: (step) => {
        emit(this, 'attempt', { reason, node: this.#node, epoch: this.#epoch, step });
        if (step.alarm) emit(this, 'alarm', new CallError('media_unreachable', { retryable: true }));
      },
      secured: (transport) => {
        this.#gap.mark();
        this.#adopt(transport);
      },
      discarded: () => {
        if (this.#transport && !this.#transport.broken) this.#tracks.carry(this.#transport);
      },
      read: ({ sdp }, { how }) => {
        if (how !== 'restart' || this.#rejectAnswers === 0) return sdp;
        this.#rejectAnswers--;
        return sdp.slice(0, sdp.lastIndexOf('\nm=') + 1); // One m-line is missing: no browser takes that.
      },
    };
  }

  /** The old connection falls silent, or both would be encoded for. */
  #make() {
    const { audioSlots, videoSlots, simulcast, scalabilityMode, createTransform } = this.#options;
    const videoCodec = this.#videoCodec;
    this.#made++;
    const transport = new Transport({ id: this.#made, iceServers: this.#iceServers, audioSlots, videoSlots, simulcast, videoCodec, scalabilityMode, createTransform });
    transport.addEventListener('trouble', () => this.#onTrouble(transport));
    this.#tracks.silence(this.#transport);
    this.#tracks.carry(transport);
    return transport;
  }

  /** @param {Transport} transport */
  #adopt(transport) {
    if (transport === this.#transport) return;
    const before = this.#transport;
    this.#transport = transport;
    this.#ssrcs.clear();
    this.#tracks.carry(transport); // What the page changed meanwhile.
    this.#slots.bind(transport.lanes);
    before?.close();
    this.#monitor.learnSoon(transport, this.#closing.signal);
  }

  /** @param {import('./freeze-policy.js').Remedy} remedy */
  #remedy({ refresh, how }) {
    if (refresh.length > 0) this.#options.send({ type: 'refresh', mids: refresh });
    this.#renew('frozen', how);
  }

  /**
   * @param {'frozen' | 'asked'} reason
   * @param {import('./protocol.js').How | ''} how
   */
  #renew(reason, how) {
    if (how !== '') this.#go({ reason, node: this.#node, epoch: this.#epoch, canMove: how === 'restart', attempts: 1 });
  }

  /** @param {Transport} transport */
  #onTrouble(transport) {
    if (transport !== this.#transport || this.#move || this.#closing.signal.aborted) return;
    this.#go({ reason: 'network', node: this.#node, epoch: this.#epoch, canMove: true });
  }

  /** ICE may need half a minute to notice what a second of silence tells. */
  async #onOnline() {
    const transport = this.#transport;
    if (!transport || this.#move) return;
    try {
      const before = await transport.stats();
      await wait(SILENT_MS, this.#closing.signal);
      if (judge(before, await transport.stats()) === 'secured') this.#onTrouble(transport);
    } catch {
      // Closed meanwhile.
    }
  }

  /** @param {Step} step */
  async #report({ how, attempt }) {
    const [node, epoch] = [this.#node, this.#epoch];
    const measured = await this.#gap.measured();
    if (measured === null) return;
    const journey = { node, epoch, how, attempt, ...measured };
    emit(this, this.#migrations.end(journey), journey);
  }
}
