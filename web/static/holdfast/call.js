// The call: the interface of Holdfast for an application that joins a room.

import { socketUrl } from './address.js';
import { checkBoolean, checkCallOptions, checkedWants, checkIdentities, checkJoin, checkLine, checkName, checkPeer, checkSource, checkTrack } from './arguments.js';
import { mediaOptions } from './call-options.js';
import { callState } from './call-state.js';
import { Chat } from './chat.js';
import { Data } from './data.js';
import { emit, on } from './emit.js';
import { CallError } from './errors.js';
import { Media } from './media.js';
import { tellMedia } from './media-messages.js';
import { Messages } from './messages.js';
import { Moderation } from './moderation.js';
import { reportMoves } from './move-reports.js';
import { OwnSources } from './own-sources.js';
import { Roster } from './roster.js';
import { Said } from './said.js';
import { Session } from './session.js';
import { isDue } from './stall.js';
import { View } from './view.js';
import { WatchList } from './watch-list.js';

/** @typedef {import('./protocol.js').Source} Source */
/** @typedef {import('./protocol.js').Want} Want */
/** @typedef {import('./protocol.js').ServerMessage} ServerMessage */
/** @typedef {import('./call-state.js').CallState} CallState */
/** @typedef {import('./call-options.js').CallOptions} CallOptions */
/** @typedef {import('./call-options.js').JoinOptions} JoinOptions */

/**
 * Events, each a CustomEvent:
 * - `state` {state}
 * - `waiting` {position, reason, estimateMs?}: the room has no place yet; `joined` follows by itself
 * - `joined` the server's message: who I am, who is here
 * - `roster` {roster}
 * - `audience` {audience}: how many others are in a large room and not in its roster
 * - `slot` {peer, source, kind, mid, stream, live, paused}: somebody's source appears, moves, pauses or vanishes
 * - `lacks` {lacks}: pictures that this browser cannot show, or no longer
 * - `undecodable` {undecodable}: streams that arrive and cannot be decoded, and for which nothing more is tried, or no longer
 * - `room-metadata` {metadata}: the application has changed the room's metadata, or they are known now
 * - `limited` {limited}: the media node begins or ceases to hold pictures back
 * - `speakers` {speakers}: loudest first
 * - `chat` {line}: a line was said, or is known to be sent or not
 * - `data` {peer, identity, topic, payload, reliable}: a message over data channels; `data-open` {open}: they are open, or no longer
 * - `reactions`, `muted-by`, `unmute-asked`, `permissions`, `door`: see Moderation
 * - `presence` {changes}: watched users of whom something else is known now
 * - `stalled` {silentMs}: nothing arrives any more; every second while that is so, except during a move
 * - `migration` {phase: 'started' | 'attempt' | 'done', node, epoch, how?, attempt?, gapMs?, lost?}
 * - `continued` {node, epoch}: the room moved, and another node goes on with the same connection: this client had nothing to do
 * - `mended` {node, epoch, how, attempt, gapMs, lost}: the connection was made again or renewed; the room stayed where it was
 * - `error` CallError: told, and the call goes on
 * - `left` {code, message}: the call is over
 */
export class Call extends /** @type {import('./events.js').TypedTarget<import('./events.js').CallEvents>} */ (EventTarget) {
  /** @type {CallState} */
  #state = 'idle';
  #options;
  #roster = new Roster();
  #chat = new Chat(
    (message) => this.#session?.send(message) ?? false,
    (line) => emit(this, 'chat', { line }),
  );
  #watched = new WatchList(this, (message) => this.#session?.send(message) ?? false);
  /** Direct messages, to people elsewhere too: see Messages. */
  messages = new Messages((message) => this.#session?.send(message) ?? false);
  /** Messages to people in the room over data channels, for a call with the option `data`. */
  data;
  /** Whether the media node is near its ceiling. Pictures are smaller or paused then, and sound is complete. */
  limited = false;
  /** How many others are in the room and not in the roster: in a large room, some of those who only watch. Who raises a hand or writes is in the roster. */
  audience = 0;
  /** What the application says of the room. */
  roomMetadata = '';
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
  moderation = new Moderation(this, {
    send: (message) => this.#session?.send(message),
    sendOrKeep: (message) => this.#session?.sendOrKeep(message),
    mute: (source) => this.#own.setMuted(source, true),
    isMuted: (source) => this.#own.isMuted(source),
    me: () => this.#me,
  });
  #view = new View();
  #said = new Said(this.#view, this.#own, (message) => this.#session?.send(message));
  #wentUp = false;

  /** @param {CallOptions} [options] throws a CallError `bad_argument` for wrong ones */
  constructor(options = {}) {
    super();
    checkCallOptions(options);
    this.#options = options;
    this.data = new Data(options.data ?? false, {
      heard: (message) => emit(this, 'data', message),
      changed: (open) => emit(this, 'data-open', { open }),
      may: () => this.#me?.permissions?.chat !== false,
    });
  }

  get state() {
    return this.#state;
  }

  /** This client's peer id; empty before `joined`. */
  get peer() {
    return this.#me?.peer ?? '';
  }

  /** This client's identity, as its token names it; empty before `joined`. */
  get identity() {
    return this.#me?.identity ?? '';
  }

  get room() {
    return this.#me?.room ?? '';
  }

  /** The media node that the server named last; empty before the first. */
  get node() {
    return this.#media?.node ?? '';
  }

  get epoch() {
    return this.#session?.epoch ?? 0;
  }

  /** Everyone in the room, this client included. */
  get roster() {
    return this.#roster.entries;
  }

  /** The chat lines that this client has seen, at most the newest 500. */
  get chat() {
    return this.#chat.lines;
  }

  /** The presence of every watched user; `unknown` until an answer has come, and after 15 s without a connection. */
  get watched() {
    return this.#watched.users;
  }

  get slots() {
    return this.#media?.slots ?? [];
  }

  /** The pictures that this browser cannot show, because it lacks their codec. Their publishers are asked for a codec that everybody has. */
  get lacks() {
    return this.#media?.lacks ?? [];
  }

  /**
   * The streams that arrive and cannot be decoded, perhaps because their sender encrypts with another key, and for which nothing more is tried. A
   * stream that is shown after all is no longer among them.
   */
  get undecodable() {
    return this.#media?.undecodable ?? [];
  }

  /**
   * Returns the stream of a peer's source. It is the same object for as long as the peer is in the room, and may be an element's srcObject
   * before it has a track.
   * @param {string} peer
   * @param {Source} source
   */
  stream(peer, source) {
    checkPeer(peer);
    checkSource(source);
    return this.#media?.stream(peer, source) ?? new MediaStream();
  }

  /**
   * Makes the connection of the first join, for which a browser takes some 50 ms, so that `join` only sends it. Does nothing once joined. `leave`
   * closes a connection that is not used.
   */
  prepare() {
    if (this.#state !== 'idle' || typeof RTCPeerConnection === 'undefined') return;
    this.#media ??= this.#makeMedia();
    this.#media.prepareFirst();
  }

  /**
   * Resolves when the person is in the room, perhaps after waiting in line; media follows (`state` becomes `live`). Rejects with a CallError: at
   * once with `bad_url`, `bad_token` or `bad_argument`, after which the call can be joined again, else within `joinLimitMs`.
   * @param {JoinOptions} options
   * @returns {Promise<import('./protocol.js').Joined>}
   */
  async join(options) {
    if (this.#state !== 'idle') throw new CallError('bad_state');
    const address = socketUrl(options?.url);
    checkJoin(options);
    if (typeof RTCPeerConnection === 'undefined') throw new CallError('no_webrtc');
    const { token, room, name, wait, stream, joinLimitMs } = options;
    this.#own.take(stream);
    this.#open({ url: address, token, room, name, wait, joinLimitMs, WebSocket: this.#options.WebSocket });
    this.#setState('joining');
    return new Promise((resolve, reject) => {
      this.addEventListener('joined', (event) => resolve(/** @type {CustomEvent} */ (event).detail), { once: true });
      this.addEventListener('left', (event) => reject(CallError.of(/** @type {CustomEvent} */ (event).detail)), { once: true });
      this.#session?.start();
      this.#media?.prepareFirst();
    });
  }

  /**
   * Leaves the room. The tracks that the application gave are not stopped. `back` says that the page may come again at once, so that a place in
   * a full room, or in its waiting list, is kept for 10 s.
   * @param {{back?: boolean}} [options]
   */
  leave(options) {
    if (this.#state === 'idle') {
      this.#media?.close();
      this.#media = null;
    }
    this.#session?.leave(options?.back ?? false);
    this.#finish({ code: 'left', message: 'You left the call.' });
  }

  /**
   * Mutes or unmutes a source. A muted source keeps its track, of which nothing is sent. An `error` event tells when the token does not allow
   * the source that is to be unmuted. Rejects with `bad_argument` for what is no source.
   * @param {Source} source
   * @param {boolean} muted
   */
  async setMuted(source, muted) {
    checkSource(source);
    checkBoolean('muted', muted);
    if (!muted && !this.mayPublish(source)) emit(this, 'error', new CallError('not_published'));
    await this.#own.setMuted(source, muted);
  }

  /**
   * Sends another track for a source, or none for null, without a new offer. Rejects with `not_published` when the token does not allow the source,
   * and with `bad_argument` for a track of another kind.
   * @param {Source} source
   * @param {MediaStreamTrack | null} track
   */
  async replaceTrack(source, track) {
    checkTrack(source, track);
    if (track && !this.mayPublish(source)) throw new CallError('not_published');
    await this.#own.replace(source, track);
  }

  /**
   * Whether nothing is sent of a source, because it is muted, has no track, or is not allowed.
   * @param {Source} source
   */
  isMuted(source) {
    checkSource(source);
    return this.#own.isMuted(source);
  }

  /**
   * Whether the token allows a source to be published; true before `joined`. `screen-audio` also needs a server that knows it, and a
   * connection that has a place for it.
   * @param {Source} source
   */
  mayPublish(source) {
    checkSource(source);
    const { publish = true, sources } = this.#me?.permissions ?? {};
    const taken = source !== 'screen-audio' || !this.#me || Boolean(this.#session?.screenAudio && this.#media?.sends(source));
    return publish && (sources?.includes(source) ?? true) && taken;
  }

  /**
   * Sends a direct message to everybody else in the room. Resolves with the outcome for each identity: see `messages.sendToEach`.
   * @param {unknown} body
   * @param {import('./messages.js').SendOptions} [options]
   */
  sendToAll(body, options = {}) {
    const others = this.roster.map(({ identity }) => identity).filter((identity) => identity !== this.#me?.identity);
    return this.messages.sendToEach(others, body, options);
  }

  /**
   * Sends a chat line of text, never markup. Returns null for a blank text, before `joined`, and when the token does not allow chat, which an
   * `error` event tells. Throws a CallError `text_too_long` for more than 2000 characters.
   * @param {string} text
   */
  say(text) {
    checkLine(text);
    if (this.#me?.permissions?.chat === false) {
      emit(this, 'error', new CallError('not_said'));
      return null;
    }
    return this.#me ? this.#chat.say({ peer: this.peer, name: this.#me.name, text }) : null;
  }

  /**
   * Changes the name that the others see. An `error` event tells when the token does not allow it. Throws `bad_argument` for more than 256 bytes.
   * @param {string} name
   */
  rename(name) {
    checkName(name);
    if (this.#me?.permissions?.rename) this.#said.rename(name);
    else emit(this, 'error', new CallError('not_renamed'));
  }

  /**
   * Replaces the identities, at most 500, of whom `presence` events tell whether they are online. The token needs `canWatch`: else an `error`.
   * @param {Iterable<string>} users
   */
  watch(users) {
    this.#watched.set(checkIdentities(users));
  }

  /**
   * Tells the media node which sources the page shows, most important first, in device pixels. The node fills slots and chooses layers by this.
   * The first 512 count.
   * @param {Want[]} wants
   */
  setView(wants) {
    this.#said.show(checkedWants(wants));
  }

  /**
   * Says whether an application's transform drops everything that arrives of a source. Nothing is done to repair an unreadable source.
   * @param {string} peer
   * @param {Source} source
   * @param {boolean} unreadable
   */
  setUnreadable(peer, source, unreadable) {
    checkPeer(peer);
    checkSource(source);
    this.#view.setUnreadable(peer, source, unreadable);
  }

  /**
   * Resolves with pcId (grows with every new RTCPeerConnection), epoch, node, offersSent, migrations, slots, perSlot (by mid), outbound, rttMs,
   * path, ways and sentLoss; undefined before `join`.
   */
  async stats() {
    return this.#media?.stats();
  }

  #makeMedia() {
    const media = new Media({
      ...mediaOptions(this.#options),
      send: (message) => this.#session?.send(message) ?? false,
      sendAhead: (offer) => this.#session?.sendAhead(offer) ?? false,
      isOpen: () => this.#session?.isOpen ?? false,
      socketOpen: async (signal) => this.#session?.opened(signal),
      screenAudio: () => this.#session?.screenAudio ?? false,
      data: this.#options.data ? this.data : null,
      isExpected: (stream) => this.#view.expects(stream, this.roster),
      people: () => this.roster.length,
    });
    for (const type of ['slot', 'lacks', 'undecodable', 'mended', 'continued']) on(media, type, (detail) => emit(this, type, detail));
    on(media, 'alarm', (error) => emit(this, 'error', error));
    reportMoves(media, { application: (migration) => emit(this, 'migration', migration), server: (message) => this.#session?.sendOrKeep(message) });
    on(media, 'way', (path) => this.#session?.send({ type: 'ping', t: Math.round(performance.now()), path }));
    on(media, 'moving', () => this.#refreshState());
    on(media, 'up', () => this.#onUp());
    on(media, 'stalled', ({ epoch, silentMs }) => {
      emit(this, 'stalled', { silentMs });
      if (isDue(media.slots, this.roster)) this.#session?.send({ type: 'stalled', epoch, silentMs });
    });
    return media;
  }

  /** @param {import('./session.js').SessionOptions} options */
  #open(options) {
    const session = new Session(options, () => this.#roster.cursor);
    const media = (this.#media ??= this.#makeMedia());
    this.#session = session;
    this.moderation.follow(session); // First: what is repeated to a new node is said as it is then.
    on(session, 'joined', (message) => this.#onJoined(message));
    on(session, 'resumed', (message) => this.#onResumed(message));
    on(session, 'message', (message) => this.#onMessage(message));
    on(session, 'waiting', ({ position, reason, estimateMs }) => emit(this, 'waiting', { position, reason, estimateMs }));
    on(session, 'asked', () => media.sendAhead());
    on(session, 'ahead-refused', () => media.offers.aheadRefused());
    on(session, 'lost', () => this.#refreshState());
    on(session, 'refused', ({ message, error }) => this.#onRefused(message, error));
    on(session, 'error', (error) => emit(this, 'error', error));
    on(session, 'ended', (error) => this.#finish({ code: error.code, message: error.message, retryable: error.retryable }));
    this.#watched.follow(session);
    this.messages.follow(session);
  }

  /** @param {import('./protocol.js').Joined} message */
  #onJoined(message) {
    this.#me = message;
    this.#wentUp = false;
    this.#setLimited(false);
    this.#describeRoom(message.roomMetadata ?? '');
    this.#setAudience(message.audience ?? 0);
    this.#replaceRoster(message);
    this.#own.begin((source) => this.mayPublish(source));
    emit(this, 'joined', message);
    if (this.#own.sources.some((source) => !this.mayPublish(source))) emit(this, 'error', new CallError('not_published'));
    this.#media?.start(message);
    this.#refreshState();
  }

  /** @param {import('./protocol.js').Resumed} message */
  #onResumed(message) {
    this.#setLimited(false);
    this.#describeRoom(message.roomMetadata ?? this.roomMetadata);
    this.#setAudience(message.audience ?? 0);
    this.#replaceRoster(message);
    this.#own.renew('screen-audio');
    this.#media?.resumed(message);
    this.#said.again();
    this.#refreshState();
  }

  /** @param {ServerMessage} message */
  #onMessage(message) {
    switch (message.type) {
      case 'speakers':
        emit(this, 'speakers', { speakers: message.speakers });
        break;
      case 'limited':
        this.#setLimited(message.limited);
        break;
      case 'audience':
        this.#setAudience(message.others);
        break;
      case 'room-updated':
        this.#describeRoom(message.metadata);
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
      case 'roster-changes':
        if (this.#roster.apply(message)) {
          for (const peer of message.left) this.#forget(peer);
          for (const entry of message.entries) this.#noteMuted(entry);
          emit(this, 'roster', { roster: this.roster });
        }
        break;
      default:
        if (message.type === 'restart') this.#own.renew('screen-audio');
        if (this.#media) tellMedia(this.#media, message);
    }
  }

  /**
   * Drops a message that the server refused for good, so that it is not sent again on the next connection.
   * @param {import('./protocol.js').ClientMessage} message
   * @param {CallError} error
   */
  #onRefused(message, error) {
    if (message.type === 'offer') this.#media?.offers.rejected({ type: 'offer-rejected', id: message.id, message: error.message, epoch: this.epoch });
    if (error.retryable) return;
    if (message.type === 'chat') this.#chat.refused(message);
    this.#said.refused(message);
  }

  /** @param {boolean} limited */
  #setLimited(limited) {
    if (limited !== this.limited) emit(this, 'limited', { limited: this.limited = limited });
  }

  /** @param {number} audience */
  #setAudience(audience) {
    if (audience !== this.audience) emit(this, 'audience', { audience: this.audience = audience });
  }

  /** @param {string} metadata */
  #describeRoom(metadata) {
    if (metadata !== this.roomMetadata) emit(this, 'room-metadata', { metadata: this.roomMetadata = metadata });
  }

  /** @param {{roster: import('./protocol.js').RosterEntry[], epoch: number, seq: number}} snapshot */
  #replaceRoster(snapshot) {
    for (const peer of this.#roster.replace(snapshot)) this.#forget(peer);
    emit(this, 'roster', { roster: this.roster });
  }

  /** @param {string} peer */
  #forget(peer) {
    this.#media?.forget(peer);
    this.#view.forget(peer);
  }

  /** @param {import('./protocol.js').RosterEntry} entry */
  #noteMuted({ peer, audioMuted, videoMuted }) {
    if (audioMuted) this.#media?.silenced(peer, 'microphone');
    if (videoMuted) this.#media?.silenced(peer, 'camera');
  }

  #onUp() {
    this.#wentUp = true;
    this.#own.renew('screen-audio'); // The connection may have a place for it now.
    this.#said.again();
    this.#refreshState();
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
    this.#watched.close();
    this.messages.close();
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
