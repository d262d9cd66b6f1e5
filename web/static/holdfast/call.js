// The call: what an application sees of Holdfast.

import { socketUrl } from './address.js';
import { callState } from './call-state.js';
import { canMoveLiveConnection } from './capability.js';
import { Chat } from './chat.js';
import { emit, on } from './emit.js';
import { CallError } from './errors.js';
import { isExpected } from './freeze.js';
import { Media } from './media.js';
import { OwnSources } from './own-sources.js';
import { Roster } from './roster.js';
import { Session } from './session.js';
import { slotKey, streamOf } from './slots.js';
import { isDue } from './stall.js';

/** @typedef {import('./protocol.js').Source} Source */
/** @typedef {import('./protocol.js').Want} Want */
/** @typedef {import('./protocol.js').ServerMessage} ServerMessage */
/** @typedef {import('./call-state.js').CallState} CallState */
/** @typedef {import('./call-options.js').CallOptions} CallOptions */
/** @typedef {import('./call-options.js').JoinOptions} JoinOptions */
/** Of one message (docs/PROTOCOL.md). */
const LOST_LIMIT = 64;

/**
 * Events, each a CustomEvent:
 * - `state` {state}
 * - `joined` the server's message: who I am, who is here
 * - `roster` {roster}
 * - `slot` {peer, source, kind, mid, stream, live, paused}: somebody's source appears, moves, pauses or vanishes
 * - `lacks` {lacks}: pictures that this browser cannot show, or no longer
 * - `speakers` {speakers}: loudest first
 * - `chat` {line}: a line was said, or is known to be sent or not
 * - `migration` {phase: 'started' | 'attempt' | 'done', node, epoch, how?, attempt?, gapMs?, lost?}
 * - `mended` {node, epoch, how, attempt, gapMs, lost}: the connection was made again or renewed; the room stayed where it was
 * - `error` CallError: told, and the call goes on
 * - `left` {code, message}: the call is over
 */
export class Call extends EventTarget {
  /** @type {CallState} */
  #state = 'idle';
  #options;
  #roster = new Roster();
  #chat = new Chat(
    (message) => this.#session?.send(message) ?? false,
    (line) => emit(this, 'chat', { line }),
  );
  /** @type {Session | null} */
  #session = null;
  /** @type {Media | null} */
  #media = null;
  /** @type {import('./protocol.js').Joined | null} */
  #me = null;
  #own = new OwnSources({
    say: (message) => this.#session?.send(message),
    send: (source, track) => this.#media?.setTrack(source, track),
  });
  /** @type {Want[]} */
  #wants = [];
  /**
   * By slotKey.
   * @type {Set<string>}
   */
  #unreadable = new Set();
  #name = '';
  #wentUp = false;

  /** @param {CallOptions} [options] */
  constructor(options = {}) {
    super();
    this.#options = options;
  }

  get state() {
    return this.#state;
  }

  /** Empty before `joined`. */
  get peer() {
    return this.#me?.peer ?? '';
  }

  get room() {
    return this.#me?.room ?? '';
  }

  /** As last heard. */
  get node() {
    return this.#media?.node ?? '';
  }

  get epoch() {
    return this.#session?.epoch ?? 0;
  }

  /** Everyone in the room, oneself included. */
  get roster() {
    return this.#roster.entries;
  }

  /** The newest 500 lines since one came. */
  get chat() {
    return this.#chat.lines;
  }

  get slots() {
    return this.#media?.slots ?? [];
  }

  /** Pictures that are not shown here: the browser has not their codec. Their publishers are asked for one that everybody has. */
  get lacks() {
    return this.#media?.lacks ?? [];
  }

  /**
   * The same object for as long as the person is here. It may be an element's srcObject before anything is in it.
   * @param {string} peer
   * @param {Source} source
   */
  stream(peer, source) {
    return this.#media?.stream(peer, source) ?? new MediaStream();
  }

  /**
   * Resolves when the person is in the room; media follows (`state` becomes `live`). Rejects with a CallError.
   * @param {JoinOptions} options
   * @returns {Promise<import('./protocol.js').Joined>}
   */
  async join({ url, token, room, name, stream, joinLimitMs }) {
    if (this.#state !== 'idle') throw new CallError('bad_state');
    if (typeof RTCPeerConnection === 'undefined') throw new CallError('no_webrtc');
    const address = socketUrl(url);
    this.#own.take(stream);
    this.#open({ url: address, token, room, name, joinLimitMs, WebSocket: this.#options.WebSocket });
    this.#setState('joining');
    return new Promise((resolve, reject) => {
      this.addEventListener('joined', (event) => resolve(/** @type {CustomEvent} */ (event).detail), { once: true });
      this.addEventListener('left', (event) => reject(CallError.of(/** @type {CustomEvent} */ (event).detail)), { once: true });
      this.#session?.start();
    });
  }

  /** The streams that were given stay the application's. */
  leave() {
    this.#session?.leave();
    this.#finish({ code: 'left', message: 'You left the call.' });
  }

  /**
   * The track is kept; nothing is sent of a muted one.
   * @param {Source} source
   * @param {boolean} muted
   */
  async setMuted(source, muted) {
    if (!muted && !this.mayPublish(source)) emit(this, 'error', new CallError('not_published'));
    await this.#own.setMuted(source, muted);
  }

  /**
   * No renegotiation. Rejects with `not_published` when the token does not allow the source.
   * @param {Source} source
   * @param {MediaStreamTrack | null} track
   */
  async replaceTrack(source, track) {
    if (track && !this.mayPublish(source)) throw new CallError('not_published');
    await this.#own.replace(source, track);
  }

  /**
   * Whether nothing is sent of a source.
   * @param {Source} source
   */
  isMuted(source) {
    return this.#own.isMuted(source);
  }

  /**
   * True as long as it is not known.
   * @param {Source} source
   */
  mayPublish(source) {
    const { publish = true, sources } = this.#me?.permissions ?? {};
    return publish && (sources?.includes(source) ?? true);
  }

  /**
   * Says a line of text, never markup, of at most 2000 characters. Null when there is nothing to say or the token
   * does not allow it, which an `error` tells.
   * @param {string} text
   */
  say(text) {
    if (this.#me?.permissions?.chat === false) {
      emit(this, 'error', new CallError('not_said'));
      return null;
    }
    return this.#me ? this.#chat.say({ peer: this.peer, name: this.#me.name, text }) : null;
  }

  /**
   * Changes the name that the others see. Where the token does not allow it an `error` tells.
   * @param {string} name
   */
  rename(name) {
    if (this.#me?.permissions?.rename) {
      this.#name = name;
      this.#session?.send({ type: 'rename', name });
    } else emit(this, 'error', new CallError('not_renamed'));
  }

  /**
   * What is shown, most important first, in device pixels. The media node fills slots and chooses layers by it.
   * @param {Want[]} wants
   */
  setView(wants) {
    if (JSON.stringify(wants) === JSON.stringify(this.#wants)) return;
    this.#wants = wants;
    this.#session?.send({ type: 'view', wants });
  }

  /**
   * Says that an application's transform drops all that comes of a source, or does no more: nothing is done then to have it shown.
   * @param {string} peer
   * @param {Source} source
   * @param {boolean} unreadable
   */
  setUnreadable(peer, source, unreadable) {
    if (unreadable) this.#unreadable.add(slotKey(peer, source));
    else this.#unreadable.delete(slotKey(peer, source));
  }

  /** pcId (grows with every new RTCPeerConnection), epoch, node, offersSent, migrations, slots, perSlot (by mid), outbound. */
  async stats() {
    return this.#media?.stats();
  }

  /** @param {import('./session.js').SessionOptions} options */
  #open(options) {
    const session = new Session(options, () => this.#roster.cursor);
    const { audioSlots = 6, videoSlots = 12, simulcast = true, moveLive, videoCodec, createTransform, faults = {} } = this.#options;
    const media = new Media({
      send: (message) => session.send(message),
      isOpen: () => session.isOpen,
      socketOpen: (signal) => session.opened(signal),
      canMove: moveLive ?? canMoveLiveConnection(/** @type {any} */ (navigator)),
      audioSlots,
      videoSlots,
      simulcast,
      videoCodec,
      createTransform,
      faults,
      isExpected: (stream) => !this.#unreadable.has(slotKey(stream.peer, stream.source)) && isExpected(stream, { roster: this.roster, wants: this.#wants, hidden: globalThis.document?.visibilityState === 'hidden' }),
      people: () => this.roster.length,
    });
    this.#session = session;
    this.#media = media;
    on(session, 'joined', (message) => this.#onJoined(message));
    on(session, 'resumed', (message) => this.#onResumed(message));
    on(session, 'message', (message) => this.#onMessage(message));
    on(session, 'lost', () => this.#refreshState());
    on(session, 'error', (error) => emit(this, 'error', error));
    on(session, 'ended', (error) => this.#finish({ code: error.code, message: error.message, retryable: error.retryable }));
    on(media, 'slot', (change) => emit(this, 'slot', change));
    on(media, 'lacks', (lacks) => emit(this, 'lacks', lacks));
    on(media, 'alarm', (error) => emit(this, 'error', error));
    on(media, 'moving', (detail) => this.#onMoving(detail));
    on(media, 'attempt', (detail) => this.#onAttempt(detail));
    on(media, 'up', () => this.#onUp());
    on(media, 'migrated', (migration) => this.#onMigrated(migration));
    on(media, 'stalled', ({ epoch, silentMs }) => {
      if (isDue(media.slots, this.roster)) session.send({ type: 'stalled', epoch, silentMs });
    });
    on(media, 'mended', (mend) => emit(this, 'mended', mend));
  }

  /** @param {import('./protocol.js').Joined} message */
  #onJoined(message) {
    this.#me = message;
    this.#wentUp = false;
    this.#replaceRoster(message);
    if (this.#own.sources.some((source) => !this.mayPublish(source))) emit(this, 'error', new CallError('not_published'));
    this.#own.begin((source) => this.mayPublish(source));
    emit(this, 'joined', message);
    this.#media?.start(message);
    this.#refreshState();
  }

  /** @param {import('./protocol.js').Resumed} message */
  #onResumed(message) {
    this.#replaceRoster(message);
    this.#media?.resumed(message);
    this.#sayAgain();
    this.#refreshState();
  }

  /** @param {ServerMessage} message */
  #onMessage(message) {
    switch (message.type) {
      case 'answer':
        this.#media?.answered(message);
        break;
      case 'offer-rejected':
        this.#media?.rejected(message);
        break;
      case 'slots':
        this.#media?.heardSlots(message.slots, message.lacks);
        break;
      case 'restart':
        this.#media?.restart(message);
        break;
      case 'reoffer':
        this.#media?.reoffer(message);
        break;
      case 'speakers':
        emit(this, 'speakers', { speakers: message.speakers });
        break;
      case 'chat':
        this.#chat.heard(message, message.peer === this.peer);
        break;
      case 'roster':
        this.#replaceRoster(message);
        break;
      case 'peer-joined':
      case 'peer-updated':
      case 'peer-left':
        if (this.#roster.apply(message)) {
          if (message.type === 'peer-left') this.#forget(message.peer);
          else this.#noteMuted(message.peer);
          emit(this, 'roster', { roster: this.roster });
        }
        break;
      default:
    }
  }

  /** @param {{roster: import('./protocol.js').RosterEntry[], epoch: number, seq: number}} snapshot */
  #replaceRoster(snapshot) {
    for (const peer of this.#roster.replace(snapshot)) this.#forget(peer);
    emit(this, 'roster', { roster: this.roster });
  }

  /** @param {string} peer */
  #forget(peer) {
    this.#media?.forget(peer);
    for (const key of this.#unreadable) if (streamOf(key).peer === peer) this.#unreadable.delete(key);
  }

  /** @param {import('./protocol.js').RosterEntry} entry */
  #noteMuted({ peer, audioMuted, videoMuted }) {
    if (audioMuted) this.#media?.silenced(peer, 'microphone');
    if (videoMuted) this.#media?.silenced(peer, 'camera');
  }

  /** @param {{reason: import('./journey.js').Reason, node: string, epoch: number}} detail */
  #onMoving({ reason, node, epoch }) {
    if (reason === 'moved') emit(this, 'migration', { phase: 'started', node, epoch });
    this.#refreshState();
  }

  /** @param {{reason: import('./journey.js').Reason, step: import('./restart-policy.js').Step}} detail */
  #onAttempt({ reason, step: { how, attempt } }) {
    if (reason === 'moved') emit(this, 'migration', { phase: 'attempt', node: this.node, epoch: this.epoch, how, attempt });
  }

  #onUp() {
    this.#wentUp = true;
    this.#sayAgain();
    this.#refreshState();
  }

  /** @param {import('./journey.js').Journey} migration */
  #onMigrated(migration) {
    const { epoch, attempt, how, gapMs, lost } = migration;
    this.#session?.sendOrKeep({ type: 'migrated', epoch, attempt, how, gapMs, ...(lost.length > 0 && { lost: lost.slice(0, LOST_LIMIT) }) });
    emit(this, 'migration', { phase: 'done', ...migration });
  }

  /** A new node must know this. */
  #sayAgain() {
    if (this.#wants.length > 0) this.#session?.send({ type: 'view', wants: this.#wants });
    if (this.#name !== '') this.#session?.send({ type: 'rename', name: this.#name });
    this.#own.sayAgain();
  }

  #refreshState() {
    if (this.#state === 'left' || this.#me === null) return;
    this.#setState(callState({ open: this.#session?.isOpen ?? false, wentUp: this.#wentUp, journey: this.#media?.journey ?? '' }));
  }

  /** @param {{code: string, message: string, retryable?: boolean}} reason */
  #finish(reason) {
    if (this.#state === 'left' || this.#state === 'idle') return;
    this.#media?.close();
    this.#chat.close();
    this.#setState('left');
    emit(this, 'left', reason);
  }

  /** @param {CallState} state */
  #setState(state) {
    if (state === this.#state) return;
    this.#state = state;
    emit(this, 'state', { state });
  }
}
