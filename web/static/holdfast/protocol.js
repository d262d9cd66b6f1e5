// The messages of docs/PROTOCOL.md, and their reader. The golden files of signaling/wire hold the client and the server to that document.

export const SUBPROTOCOL = 'holdfast.v1';

export const VERSION = 1;

/** @typedef {'microphone' | 'camera' | 'screen' | 'screen-audio'} Source */
/** @typedef {'audio' | 'video'} Kind */

/** @typedef {{peer: string, identity: string, name: string, audioMuted: boolean, videoMuted: boolean, screenShared?: boolean, screenAudio?: boolean, handRaised?: number, moderator?: boolean, metadata?: string, attributes?: Record<string, string>}} RosterEntry metadata and attributes are the token's, or what an application has made of them since */
/**
 * A slot is empty when its peer is. Nothing is sent in a paused slot, because the path cannot carry its stream now.
 * @typedef {{mid: string, kind: Kind, peer: string, source: Source | '', paused?: boolean}} Slot
 */
/**
 * One sending m-line of this client, or one simulcast layer of it.
 * @typedef {{mid: string, source: Source, rid?: string, ssrc?: number, rtxSsrc?: number}} Sender
 */
/**
 * A source that the page shows, with its size in device pixels; a source of 0 x 0 is hidden.
 * @typedef {{peer: string, source: Source, width: number, height: number}} Want
 */
/** @typedef {{peer: string, level: number}} Speaker */
/** @typedef {{publish: boolean, subscribe: boolean, chat: boolean, rename: boolean, watch?: boolean, moderate?: boolean, message?: 'room' | 'anywhere', sources?: Source[]}} Permissions */

/** @typedef {{peer: string, source: Source}} Stream */

// Client to server.

/** @typedef {{type: 'join', token: string, room?: string, name?: string, wait?: boolean, rosterChanges?: boolean, places?: boolean}} Join */
/** @typedef {{type: 'resume', resume: string, attempt: number, epoch?: number, seq?: number, rosterChanges?: boolean, places?: boolean}} Resume */
/** @typedef {{mid: string, ssrc: number, rtxSsrc: number}} UnusedSlot rtxSsrc is 0 without retransmission */
/** @typedef {{type: 'offer', id: string, sdp: string, fresh: boolean, senders: Sender[], slots?: Slot[], unused?: UnusedSlot[], data?: boolean, rests?: boolean}} Offer `rests`: this client does as `rests` says */
/** @typedef {{type: 'view', wants: Want[]}} View */
/** @typedef {{type: 'mute', source: Source, muted: boolean}} Mute */
/**
 * The report of a finished move. `gapMs` is the longest gap of the streams that are shown again; `lost` lists the streams that are not.
 * @typedef {{type: 'migrated', epoch: number, attempt: number, how: How, gapMs: number, lost?: Stream[]}} Migrated
 */
/** @typedef {{type: 'refresh', mids: string[]}} Refresh */
/** @typedef {{type: 'stalled', epoch: number, silentMs: number}} Stalled */
/** @typedef {{type: 'room-updated', metadata: string, epoch: number}} RoomUpdated the application has changed the room's metadata */
/** @typedef {{type: 'limited', limited: boolean, epoch: number}} Limited the node is near its ceiling and holds pictures back */
/** @typedef {{type: 'chat', text: string, id?: string}} Say */
/** @typedef {{type: 'rename', name: string}} Rename */
/** @typedef {'mute' | 'ask-unmute' | 'lower-hand' | 'remove' | 'grant' | 'give-up' | 'end-call'} Act */
/** @typedef {{type: 'moderate', act: Act, peer?: string, source?: Source}} Moderate */
/** @typedef {{type: 'hand', raised: boolean}} Hand */
/** @typedef {{type: 'reaction', emoji: string}} React */
/** @typedef {{type: 'connect', token: string}} Connect */
/** @typedef {{type: 'watch', users: string[]}} Watch */
/** @typedef {{type: 'message', to: string[], kind: 'text' | 'ring' | 'answer' | 'app', body: unknown, stream: string, seq: number}} SendMessage */
/** @typedef {{from: string, stream: string, seq: number}} StreamMark */
/** @typedef {{type: 'received', upTo: StreamMark[]}} Received */
/** @typedef {{way: import('./ways.js').Way | '', udp?: boolean, tcp?: boolean, turn?: boolean}} MediaPath `way`: by which media goes; the others: those tried, and whether they answered */
/** @typedef {{type: 'ping', t: number, path?: MediaPath}} Ping */
/** @typedef {{type: 'ice-servers'}} AskIceServers */
/** @typedef {{type: 'door', cap?: number, closed?: boolean}} SetDoor */
/** @typedef {{type: 'let-in' | 'turn-away', identity: string}} AtDoor */
/** @typedef {{type: 'leave', back?: boolean}} Leave */
/**
 * How a connection is carried to a node: on the same RTCPeerConnection, on a new one, or on a new one while the old one still carries everything.
 * @typedef {'restart' | 'new-connection' | 'live'} How
 */
/** @typedef {Join | Resume | Offer | View | Mute | Migrated | Refresh | Stalled | Say | Rename | Moderate | Hand | React | Connect | Watch | SendMessage | Received | AskIceServers | Ping | SetDoor | AtDoor | Leave} ClientMessage */

// Server to client. `screenAudio` and `data`: the room's node takes that source, and data channels.

/** @typedef {{type: 'joined', protocol: number, room: string, peer: string, identity: string, name: string, resume: string, node: string, epoch: number, screenAudio?: boolean, data?: boolean, seq: number, roster: RosterEntry[], iceServers: RTCIceServer[], iceServersForMs?: number, permissions: Permissions, roomMetadata?: string, audience?: number}} Joined */
/** @typedef {{type: 'resumed', node: string, epoch: number, screenAudio?: boolean, data?: boolean, seq: number, roster: RosterEntry[], slots: Slot[], resume: string, mediaAlive: boolean, silenced?: Source[], iceServers?: RTCIceServer[], iceServersForMs?: number, roomMetadata?: string, audience?: number}} Resumed a server of before has no iceServers */
/** @typedef {{type: 'ice-servers', iceServers: RTCIceServer[], iceServersForMs?: number}} IceServers */
/** @typedef {{type: 'answer', id: string, sdp: string, node: string, epoch: number, screenAudio?: boolean, data?: boolean}} Answer */
/** @typedef {{type: 'offer-rejected', id: string, code?: string, message: string, epoch: number}} OfferRejected */
/** @typedef {{peer: string, source: Source, codec: string}} Lack */
/** @typedef {{type: 'slots', slots: Slot[], lacks: Lack[], node?: string, epoch: number}} Slots `node`: the media goes on there as it is */
/** @typedef {{type: 'peer-joined' | 'peer-updated', peer: RosterEntry, epoch: number, seq: number}} PeerChanged */
/** @typedef {{type: 'peer-left', peer: string, epoch: number, seq: number}} PeerLeft */
/** @typedef {{type: 'roster-changes', entries: RosterEntry[], left: string[], epoch: number, seq: number}} RosterChanges of different peers */
/** @typedef {{type: 'roster', roster: RosterEntry[], epoch: number, seq: number}} Roster */
/** @typedef {{type: 'audience', others: number, epoch: number}} Audience people who are not in the roster */
/** @typedef {{type: 'speakers', speakers: Speaker[], epoch: number}} Speakers */
/** @typedef {{type: 'chat', peer: string, name: string, text: string, id?: string, at: number, seq: number, epoch: number}} Said */
/** @typedef {{type: 'permissions', permissions: Permissions, resume: string}} PermissionsChanged */
/** @typedef {{type: 'muted-by', source: Source, by?: string, epoch: number}} MutedBy */
/** @typedef {{type: 'unmute-asked', source: Source, by?: string, epoch: number}} UnmuteAsked */
/** @typedef {{peer: string, emoji: string}} Reaction */
/** @typedef {{type: 'reactions', reactions: Reaction[], epoch: number}} Reactions */
/**
 * The order to move. `live` says that the old node goes on, so that the new connection can be made while the old one carries everything.
 * @typedef {{type: 'restart', node: string, epoch: number, screenAudio?: boolean, data?: boolean, reason: string, attempts: number, attemptMs: number, live?: boolean, overlapMs?: number}} Restart
 */
/** @typedef {{type: 'settled', epoch: number}} Settled everybody who came along has arrived */
/** @typedef {{type: 'reoffer', mids: string[], reason: string, epoch: number}} Reoffer */
/** @typedef {{type: 'rests', resting: {mid: string, rids: string[]}[], epoch: number}} Rests all layers of this client that nobody shows */
/** @typedef {{type: 'error', code: string, message: string, retryable: boolean, retryAfterMs?: number, request?: string}} ServerError `request`: the id of the refused message */
/** @typedef {{type: 'connected', protocol: number, identity: string, watch: boolean, message?: boolean}} Connected */
/** @typedef {{user: string, state: 'online' | 'offline' | 'unknown', since?: number, lastSeen?: number}} UserPresence */
/** @typedef {{type: 'presence', users: UserPresence[]}} Presence */
/** @typedef {{type: 'message', from: string, name: string, kind: 'text' | 'ring' | 'answer' | 'app' | 'notice', body: unknown, stream: string, seq: number, room?: string, at: number}} UserMessage */
/** @typedef {{type: 'message-state', to: string, stream: string, seq: number, state: 'accepted' | 'delivered' | 'offline' | 'gave_up' | 'refused', code?: string, message?: string}} MessageState */
/** @typedef {{type: 'waiting', position: number, estimateMs?: number, reason: 'full' | 'closed' | 'no_capacity'}} Waiting */
/**
 * A room's door, sent to a moderator only. `inside` counts the people with a place; `line` lists the first of those who wait.
 * @typedef {{type: 'door', cap?: number, closed: boolean, inside: number, length: number, line: {identity: string, name?: string, since?: number}[]}} Door
 */
/** @typedef {{type: 'pong', t: number}} Pong */
/** @typedef {{type: 'bye', code: string, message: string}} Bye */
/** @typedef {Joined | Resumed | IceServers | Answer | OfferRejected | Slots | PeerChanged | PeerLeft | RosterChanges | Roster | Speakers | Said | PermissionsChanged | MutedBy | UnmuteAsked | Reactions | Restart | Settled | Limited | Audience | RoomUpdated | Reoffer | Rests | ServerError | Connected | Presence | UserMessage | MessageState | Waiting | Door | Pong | Bye} ServerMessage */

// The fields without which a message means nothing. A Go server may leave empty lists out; see `listFields`.
/** @type {Record<string, Record<string, 'string' | 'number' | 'boolean' | 'object'>>} */
const required = {
  'joined': { peer: 'string', resume: 'string', node: 'string', epoch: 'number' },
  'resumed': { resume: 'string', node: 'string', epoch: 'number', mediaAlive: 'boolean' },
  'ice-servers': {},
  'answer': { id: 'string', sdp: 'string', node: 'string', epoch: 'number' },
  'offer-rejected': { id: 'string', epoch: 'number' },
  'slots': { epoch: 'number' },
  'peer-joined': { peer: 'object', epoch: 'number', seq: 'number' },
  'peer-updated': { peer: 'object', epoch: 'number', seq: 'number' },
  'peer-left': { peer: 'string', epoch: 'number', seq: 'number' },
  'roster-changes': { epoch: 'number', seq: 'number' },
  'roster': { epoch: 'number', seq: 'number' },
  'audience': { others: 'number', epoch: 'number' },
  'speakers': { epoch: 'number' },
  'chat': { peer: 'string', name: 'string', text: 'string', at: 'number', epoch: 'number' },
  'permissions': { permissions: 'object', resume: 'string' },
  'muted-by': { source: 'string', epoch: 'number' },
  'unmute-asked': { source: 'string', epoch: 'number' },
  'reactions': { epoch: 'number' },
  'restart': { node: 'string', epoch: 'number' },
  'settled': { epoch: 'number' },
  'room-updated': { metadata: 'string', epoch: 'number' },
  'limited': { limited: 'boolean', epoch: 'number' },
  'reoffer': { reason: 'string', epoch: 'number' },
  'rests': { epoch: 'number' },
  'error': { code: 'string', message: 'string' },
  'connected': { identity: 'string', watch: 'boolean' },
  'presence': {},
  'message': { from: 'string', stream: 'string', seq: 'number', kind: 'string' },
  'message-state': { to: 'string', stream: 'string', seq: 'number', state: 'string' },
  'waiting': { position: 'number', reason: 'string' },
  'door': { closed: 'boolean', inside: 'number', length: 'number' },
  'pong': { t: 'number' },
  'bye': { code: 'string', message: 'string' },
};

/** @type {Record<string, string[]>} */
const listFields = {
  'joined': ['roster', 'iceServers'],
  'resumed': ['roster', 'slots'],
  'ice-servers': ['iceServers'],
  'slots': ['slots', 'lacks'],
  'roster-changes': ['entries', 'left'],
  'roster': ['roster'],
  'speakers': ['speakers'],
  'reactions': ['reactions'],
  'reoffer': ['mids'],
  'rests': ['resting'],
  'presence': ['users'],
  'door': ['line'],
};

/**
 * Returns null for what is not a message of this version, so that a newer server can say more.
 * @param {unknown} text
 * @returns {ServerMessage | null}
 */
export function readServerMessage(text) {
  if (typeof text !== 'string') return null;
  let message;
  try {
    message = JSON.parse(text);
  } catch {
    return null;
  }
  if (message === null || typeof message !== 'object' || !Object.hasOwn(required, message.type)) return null;
  for (const [field, type] of Object.entries(required[message.type])) {
    if (typeof message[field] !== type || message[field] === null) return null;
  }
  for (const field of listFields[message.type] ?? []) {
    if (message[field] === undefined || message[field] === null) message[field] = [];
    if (!Array.isArray(message[field])) return null;
  }
  // An older node names no ICE servers when a session is resumed, so only a wrong type is refused.
  if (message.type === 'resumed' && !Array.isArray(message.iceServers ?? [])) return null;
  return message;
}
