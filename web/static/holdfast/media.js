// The media of a call: its connection, the journeys that carry the connection from node to node, the slots, and what the client learns while
// the connection runs. Only during a live move is there a second connection.

import { Connections } from './connections.js';
import { emit } from './emit.js';
import { CallError } from './errors.js';
import { AnswerFaults } from './faults.js';
import { GapWatch } from './gap-watch.js';
import { IceServers, leaveRelay } from './ice-servers.js';
import { isMeasured, isRepair } from './journey.js';
import { LiveMove } from './live-move.js';
import { Migrations } from './migrations.js';
import { Monitor } from './monitor.js';
import { Move } from './move.js';
import { Offers } from './offers.js';
import { watchNetwork } from './online.js';
import { Repairs } from './repairs.js';
import { RestartPolicy } from './restart-policy.js';
import { SlotTable } from './slots.js';
import { Aborted } from './wait.js';
import { WayNews, wayOf } from './ways.js';

/** @typedef {import('./protocol.js').Source} Source */
/** @typedef {import('./protocol.js').Slot} Slot */
/** @typedef {import('./transport.js').Transport} Transport */
/** @typedef {{node: string, epoch: number, attempts?: number, attemptMs?: number, live?: boolean, overlapMs?: number}} Order */
/** @typedef {import('./journey.js').Reason} Reason */

/**
 * Events: `slot` (SlotChange), `undecodable` ({undecodable}), `moving` ({reason, node, epoch}), `attempt` ({reason, node, epoch, step}), `up` ({reason}),
 * `migrated` and `mended` (Journey: to another node, on the same one), `continued` ({node, epoch}), `stalled` ({epoch, silentMs}), `way`
 * (MediaPath), `alarm` (CallError).
 */
export class Media extends EventTarget {
  #options;
  offers;
  ice;
  #slots = new SlotTable();
  /** @type {import('./protocol.js').Lack[]} */
  #lacks = [];
  /** @type {import('./protocol.js').Lack[]} */
  #undecodable = [];
  #gap;
  #monitor;
  #connections;
  /** @type {Move | null} */
  #move = null;
  /** @type {LiveMove | null} */
  #live = null;
  /** @type {Reason | ''} */
  #reason = '';
  #migrations = new Migrations();
  #ways = new WayNews();
  #node = '';
  #epoch = 0;
  #repairs;
  #faults;
  /**
   * The first connection, until the session is open.
   * @type {Transport | null}
   */
  #first = null;
  #closing = new AbortController();

  /** @param {import('./call-options.js').MediaOptions} options */
  constructor(options) {
    super();
    this.#options = options;
    this.offers = new Offers((offer) => options.send(offer), Boolean(options.data));
    const { isExpected, people, canMove: prepares } = options;
    this.ice = new IceServers(() => options.send({ type: 'ice-servers' }));
    this.#connections = new Connections(options, this.ice, (transport) => this.#onTrouble(transport));
    this.#repairs = new Repairs({
      connections: this.#connections,
      send: options.send,
      renew: (reason, how) => this.#renew(reason, how),
      alarm: (error) => emit(this, 'alarm', error),
    });
    this.#gap = new GapWatch(this.#slots, isExpected);
    this.#monitor = new Monitor({
      slots: this.#slots,
      ssrcs: this.#connections.ssrcs,
      gap: this.#gap,
      transport: () => this.#connections.present,
      busy: () => this.#busy,
      open: options.isOpen,
      isExpected,
      people,
      prepares,
      stalled: (silentMs) => emit(this, 'stalled', { epoch: this.#epoch, silentMs }),
      looked: (transport, stats) => {
        this.#tellWay(transport, wayOf(stats.transport.path));
        transport.fitCamera(stats);
      },
      remedy: (remedy) => this.#repairs.remedy(remedy),
      undecodable: (undecodable) => emit(this, 'undecodable', { undecodable: this.#undecodable = undecodable }),
    });
    this.#faults = new AnswerFaults(options.faults);
    watchNetwork(() => (this.#busy ? null : this.#connections.present), (transport) => this.#onTrouble(transport), this.#closing.signal);
  }

  /** The media node that the server named last. */
  get node() {
    return this.#node;
  }

  get #busy() {
    return this.#move !== null || this.#live !== null;
  }

  /** The reason of the journey under way. It is empty without a journey, and during a live move and an ICE restart in calm, which nobody should notice. */
  get journey() {
    return this.#move && this.#reason !== 'prepared' ? this.#reason : '';
  }

  get lacks() {
    return this.#lacks;
  }

  get undecodable() {
    return this.#undecodable;
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

  /** Makes the first connection and its offer, before or while the session is being joined. Both are as for a server that takes all sources. */
  async prepareFirst() {
    if (this.#first) {
      this.sendAhead();
      return;
    }
    try {
      const transport = this.#connections.add(true);
      this.#first = transport;
      const { sdp } = await transport.offerAhead();
      if (this.#first !== transport) return;
      this.offers.prepare({ sdp, fresh: true, senders: this.#connections.senders(transport, sdp, true), slots: this.slots, unused: [] });
      this.sendAhead();
    } catch {
      // The journey meets the same error, and makes another connection.
    }
  }

  /** Sends the prepared offer behind the join, if the session takes it. */
  sendAhead() {
    this.offers.sendAhead(this.#options.sendAhead);
  }

  /** The prepared connection, if it is as the server takes it. */
  #takeFirst() {
    const first = this.#first;
    this.#first = null;
    if (first?.hasSender('screen-audio') === this.#options.screenAudio()) {
      this.#connections.carry(first);
      return first;
    }
    if (first) this.#connections.discard(first);
    return null;
  }

  /** @param {{node: string, epoch: number, iceServers: RTCIceServer[], iceServersForMs?: number}} joined */
  start(joined) {
    const { node, epoch } = joined;
    this.ice.heard(joined);
    if (this.#closing.signal.aborted) return;
    this.#monitor.run(this.#closing.signal);
    this.#go({ reason: this.#connections.present ? 'rejoined' : 'first', node, epoch, canMove: false });
  }

  /** @param {Order} order */
  restart(order) {
    const { node, epoch, attempts, attemptMs, live } = order;
    const first = live && !this.#move && this.#connections.usable;
    if (first) this.#goLive(first, order);
    else this.#go({ reason: 'moved', node, epoch, canMove: this.#options.canMove, attempts, attemptMs });
  }

  /**
   * Takes the room's newest epoch, and the node at which this client's media goes on as it is. Reports to the server name both.
   * @param {{node?: string, epoch: number}} place
   */
  goesOn({ node = this.#node, epoch }) {
    if (epoch < this.#epoch) return;
    const moved = node !== this.#node;
    [this.#node, this.#epoch] = [node, epoch];
    if (!moved) return;
    this.#connections.present?.wakeLayers();
    emit(this, 'continued', { node, epoch });
  }

  /** @param {import('./protocol.js').Settled} message */
  settled({ epoch }) {
    this.#connections.lingering.settled(epoch);
  }

  /**
   * Continues after the session was resumed on a signaling node. The media goes on untouched if the media node still has it. Otherwise a journey
   * to the room's node begins, or goes on if it has begun already.
   * @param {import('./protocol.js').Resumed} resumed
   */
  resumed(resumed) {
    const { node, epoch, slots, mediaAlive } = resumed;
    if (this.ice.heard(resumed) && mediaAlive) this.#leaveRelay();
    const here = node === this.#node && epoch === this.#epoch;
    if (this.#live && here) {
      if (mediaAlive) this.#live.heard(slots);
      this.offers.resend();
    } else if (mediaAlive) {
      this.#node = node;
      this.#epoch = Math.max(this.#epoch, epoch); // Its node may hold the room under a newer pin.
      this.heardSlots(slots);
      this.offers.resend();
    } else if (this.#move && here) {
      this.offers.resend(); // Already on the way to that node.
    } else if (here) {
      // The same node shows the same certificate, with which no browser redoes DTLS on a live connection.
      this.#go({ reason: 'lost', node, epoch, canMove: false });
    } else {
      this.restart({ node, epoch });
    }
  }

  /** @param {import('./protocol.js').Reoffer} order */
  reoffer(order) {
    if (!this.#busy && order.epoch >= this.#epoch) this.#repairs.asked(order); // A journey's offer is on its way.
  }

  /** @param {import('./protocol.js').Rests} message */
  rest({ resting, epoch }) {
    if (!this.#busy && epoch >= this.#epoch) this.#connections.present?.rest(resting);
  }

  /**
   * @param {Slot[]} slots
   * @param {import('./protocol.js').Lack[]} [lacks]
   */
  heardSlots(slots, lacks = this.#lacks) {
    if (JSON.stringify(lacks) !== JSON.stringify(this.#lacks)) emit(this, 'lacks', { lacks: this.#lacks = lacks });
    if (this.#live) this.#live.heard(slots);
    else this.#show(slots, this.#slots.apply(slots));
  }

  /**
   * @param {Slot[]} slots
   * @param {import('./slots.js').SlotChange[]} changes
   */
  #show(slots, changes) {
    for (const change of changes) emit(this, 'slot', change);
    this.#gap.heard(slots);
  }

  /** @param {string} peer */
  forget(peer) {
    for (const change of this.#slots.forget(peer)) emit(this, 'slot', change);
    this.#gap.forget(peer);
  }

  /**
   * Stops measuring the gap of a source that its owner muted, because a muted source delivers nothing on purpose.
   * @param {string} peer
   * @param {Source} source
   */
  silenced(peer, source) {
    this.#gap.forget(peer, source);
  }

  /**
   * Whether this connection has a place for a source; true before there is one.
   * @param {Source} source
   */
  sends(source) {
    return this.#connections.present?.hasSender(source) ?? true;
  }

  /**
   * Sends a track for a source, on the present connection and on every later one.
   * @param {Source} source
   * @param {MediaStreamTrack | null} track
   */
  async setTrack(source, track) {
    await this.#connections.setTrack(source, track, this.#live);
  }

  close() {
    this.#closing.abort();
    this.ice.close();
    this.#gap.stop();
    this.#move?.supersede();
    this.#live?.abandon();
    this.#live = null;
    this.#first?.close();
    this.#connections.close();
  }

  /** Resolves with the figures that `call.stats()` gives. */
  async stats() {
    const { inbound, ...stats } = await this.#connections.stats();
    return {
      ...stats,
      epoch: this.#epoch,
      node: this.#node,
      offersSent: this.offers.count,
      migrations: this.#migrations.list,
      slots: this.slots,
      perSlot: Object.fromEntries(this.slots.map((slot) => [slot.mid, { ...slot, ...inbound.get(slot.mid) }])),
    };
  }

  /** @param {{reason: Reason, node: string, epoch: number, canMove: boolean, attempts?: number, attemptMs?: number}} order */
  async #go({ reason, node, epoch, canMove, attempts, attemptMs }) {
    this.#begin({ reason, node, epoch });
    this.#reason = reason;
    const frozen = new Set(this.#monitor.frozen);
    if (!isRepair(reason)) this.#monitor.reset();
    const current = this.#connections.usable;
    const policy = new RestartPolicy({ canMove: canMove && current !== null, keepsIce: reason === 'moved' && this.#options.keepsIce, attempts, attemptMs });
    const move = new Move(policy, current, this.#surroundings(reason));
    this.#move = move;
    if (current) this.#connections.restore(current);
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
      if (this.#move === move) {
        this.#move = null;
        this.#gap.stop();
      }
      if (!(error instanceof Aborted)) emit(this, 'alarm', new CallError('media_unreachable', { cause: error, retryable: true }));
    }
  }

  /**
   * Ends the journey or live move that is under way, and records the new node and epoch.
   * @param {{reason: Reason, node: string, epoch: number}} journey
   */
  #begin({ reason, node, epoch }) {
    this.#move?.supersede();
    this.#live?.abandon();
    this.#live = null;
    if (!isRepair(reason)) {
      this.#connections.present?.wakeLayers();
      this.#connections.lingering.begin();
    }
    this.#gap.stop();
    this.#node = node;
    this.#epoch = epoch;
    this.#migrations.begin(reason);
  }

  /**
   * @param {Transport} first
   * @param {Order} order
   */
  async #goLive(first, order) {
    const journey = { reason: /** @type {const} */ ('moved'), node: order.node, epoch: order.epoch };
    this.#begin(journey);
    const live = new LiveMove(order, { first, shown: this.#slots, isExpected: this.#options.isExpected, make: () => this.#connections.add(), move: this.#surroundings('moved') });
    this.#live = live;
    emit(this, 'moving', journey);
    const arrived = await live.run().catch(() => null);
    if (arrived && this.#live === live) await this.#gap.begun(new Set(this.#monitor.frozen));
    if (this.#live !== live) return; // Abandoned.
    this.#live = null;
    if (arrived) this.#swap(first, arrived, live.order);
    else this.restart({ ...order, live: false });
  }

  /**
   * Makes the second connection of a live move the present one. All of it happens in one task, so that no stream is missing or doubled meanwhile.
   * @param {Transport} first
   * @param {{transport: Transport, answer: import('./protocol.js').Answer, slots: Slot[]}} arrived
   * @param {{epoch: number, overlapMs: number}} order
   */
  #swap(first, { transport, answer, slots }, order) {
    this.#node = answer.node;
    this.#epoch = Math.max(this.#epoch, answer.epoch);
    this.#gap.mark();
    this.#use(transport);
    transport.audible = true;
    const changes = this.#slots.rebind(transport.lanes, slots);
    first.audible = false;
    this.#connections.lingering.keep(first, order);
    this.#monitor.reset();
    this.#show(slots, changes);
    emit(this, 'up', { reason: 'moved' });
    this.#report({ how: 'live', attempt: 1 });
  }

  /**
   * @param {Reason} reason
   * @returns {import('./move.js').Surroundings}
   */
  #surroundings(reason) {
    return {
      make: () => this.#takeFirst() ?? this.#connections.replace(),
      socketOpen: this.#options.socketOpen,
      ask: (transport, sdp, fresh, signal) => this.offers.ask({
        sdp, fresh, senders: this.#connections.senders(transport, sdp, fresh), slots: this.slots, unused: fresh ? [] : transport.unused(this.#slots.used),
      }, signal),
      mediaExpected: () => (reason === 'moved' || reason === 'lost') && this.#gap.expects,
      began: (step) => {
        emit(this, 'attempt', { reason, node: this.#node, epoch: this.#epoch, step });
        if (step.alarm) emit(this, 'alarm', new CallError('media_unreachable', { retryable: true }));
      },
      described: (transport) => {
        // An element takes a moment to play a new track, so it gets the track before there is media.
        if (!this.#connections.present) this.#slots.bind(transport.lanes);
      },
      secured: (transport) => {
        this.#gap.mark();
        this.#adopt(transport);
      },
      unreached: (transport) => this.#tellWay(transport, ''),
      discarded: () => this.#connections.carry(this.#connections.usable),
      read: ({ sdp }, { how }) => this.#faults.read(sdp, how),
    };
  }

  /** @param {Transport} transport */
  #adopt(transport) {
    const before = this.#connections.present;
    if (transport === before) return;
    this.#use(transport);
    this.#connections.carry(transport); // What the page changed meanwhile.
    this.#slots.bind(transport.lanes);
    before?.close();
  }

  /** @param {Transport} transport */
  #use(transport) {
    this.#connections.present = transport;
    this.#monitor.learnSoon(transport, this.#closing.signal);
  }

  /**
   * @param {'frozen' | 'asked' | 'prepared'} reason
   * @param {import('./protocol.js').How | ''} how
   */
  #renew(reason, how) {
    if (how !== '') this.#go({ reason, node: this.#node, epoch: this.#epoch, canMove: how === 'restart', attempts: 1 });
  }

  /** Leaves a relay of the former signaling node. A `network` journey begins again, because its offer was made with that node's relays. */
  #leaveRelay() {
    if (this.journey === 'network') this.#mend();
    else leaveRelay(this.#connections.usable, (transport) => this.#onTrouble(transport));
  }

  #mend() {
    this.#go({ reason: 'network', node: this.#node, epoch: this.#epoch, canMove: true });
  }

  /**
   * @param {Transport} transport
   * @param {import('./ways.js').Way | ''} way
   */
  #tellWay(transport, way) {
    const news = this.#ways.next(way, transport.ways);
    if (news) emit(this, 'way', news);
  }

  /** @param {Transport} transport */
  #onTrouble(transport) {
    if (transport !== this.#connections.present || this.#busy || this.#closing.signal.aborted) return;
    this.#mend();
  }

  /** @param {{how: import('./protocol.js').How, attempt: number}} step */
  async #report({ how, attempt }) {
    const [node, epoch] = [this.#node, this.#epoch];
    const measured = await this.#gap.measured();
    if (measured === null) return;
    const journey = { node, epoch, how, attempt, ...measured };
    emit(this, this.#migrations.end(journey), journey);
  }
}
