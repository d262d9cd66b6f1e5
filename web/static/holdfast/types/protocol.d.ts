/**
 * Returns null for what is not a message of this version, so that a newer server can say more.
 * @param {unknown} text
 * @returns {ServerMessage | null}
 */
export function readServerMessage(text: unknown): ServerMessage | null;
export const SUBPROTOCOL: "holdfast.v1";
export const VERSION: 1;
export type Source = 'microphone' | 'camera' | 'screen' | 'screen-audio';
export type Kind = 'audio' | 'video';
/**
 * metadata and attributes are the token's, or what an application has made of them since
 */
export type RosterEntry = {
    peer: string;
    identity: string;
    name: string;
    audioMuted: boolean;
    videoMuted: boolean;
    screenShared?: boolean;
    screenAudio?: boolean;
    handRaised?: number;
    moderator?: boolean;
    metadata?: string;
    attributes?: Record<string, string>;
};
/**
 * A slot is empty when its peer is. Nothing is sent in a paused slot, because the path cannot carry its stream now.
 */
export type Slot = {
    mid: string;
    kind: Kind;
    peer: string;
    source: Source | '';
    paused?: boolean;
};
/**
 * One sending m-line of this client, or one simulcast layer of it.
 */
export type Sender = {
    mid: string;
    source: Source;
    rid?: string;
    ssrc?: number;
    rtxSsrc?: number;
};
/**
 * A source that the page shows, with its size in device pixels; a source of 0 x 0 is hidden.
 */
export type Want = {
    peer: string;
    source: Source;
    width: number;
    height: number;
};
export type Speaker = {
    peer: string;
    level: number;
};
export type Permissions = {
    publish: boolean;
    subscribe: boolean;
    chat: boolean;
    rename: boolean;
    watch?: boolean;
    moderate?: boolean;
    message?: 'room' | 'anywhere';
    sources?: Source[];
};
export type Stream = {
    peer: string;
    source: Source;
};
export type Join = {
    type: 'join';
    token: string;
    room?: string;
    name?: string;
    wait?: boolean;
    rosterChanges?: boolean;
    places?: boolean;
};
export type Resume = {
    type: 'resume';
    resume: string;
    attempt: number;
    epoch?: number;
    seq?: number;
    rosterChanges?: boolean;
    places?: boolean;
};
/**
 * rtxSsrc is 0 without retransmission
 */
export type UnusedSlot = {
    mid: string;
    ssrc: number;
    rtxSsrc: number;
};
/**
 * `rests`: this client does as `rests` says
 */
export type Offer = {
    type: 'offer';
    id: string;
    sdp: string;
    fresh: boolean;
    senders: Sender[];
    slots?: Slot[];
    unused?: UnusedSlot[];
    data?: boolean;
    rests?: boolean;
};
export type View = {
    type: 'view';
    wants: Want[];
};
export type Mute = {
    type: 'mute';
    source: Source;
    muted: boolean;
};
/**
 * The report of a finished move. `gapMs` is the longest gap of the streams that are shown again; `lost` lists the streams that are not.
 */
export type Migrated = {
    type: 'migrated';
    epoch: number;
    attempt: number;
    how: How;
    gapMs: number;
    lost?: Stream[];
};
export type Refresh = {
    type: 'refresh';
    mids: string[];
};
export type Stalled = {
    type: 'stalled';
    epoch: number;
    silentMs: number;
};
/**
 * the application has changed the room's metadata
 */
export type RoomUpdated = {
    type: 'room-updated';
    metadata: string;
    epoch: number;
};
/**
 * the node is near its ceiling and holds pictures back
 */
export type Limited = {
    type: 'limited';
    limited: boolean;
    epoch: number;
};
export type Say = {
    type: 'chat';
    text: string;
    id?: string;
};
export type Rename = {
    type: 'rename';
    name: string;
};
export type Act = 'mute' | 'ask-unmute' | 'lower-hand' | 'remove' | 'grant' | 'give-up' | 'end-call';
export type Moderate = {
    type: 'moderate';
    act: Act;
    peer?: string;
    source?: Source;
};
export type Hand = {
    type: 'hand';
    raised: boolean;
};
export type React = {
    type: 'reaction';
    emoji: string;
};
export type Connect = {
    type: 'connect';
    token: string;
};
export type Watch = {
    type: 'watch';
    users: string[];
};
export type SendMessage = {
    type: 'message';
    to: string[];
    kind: 'text' | 'ring' | 'answer' | 'app';
    body: unknown;
    stream: string;
    seq: number;
};
export type StreamMark = {
    from: string;
    stream: string;
    seq: number;
};
export type Received = {
    type: 'received';
    upTo: StreamMark[];
};
/**
 * `way`: by which media goes; the others: those tried, and whether they answered
 */
export type MediaPath = {
    way: import('./ways.js').Way | '';
    udp?: boolean;
    tcp?: boolean;
    turn?: boolean;
};
export type Ping = {
    type: 'ping';
    t: number;
    path?: MediaPath;
};
export type AskIceServers = {
    type: 'ice-servers';
};
export type SetDoor = {
    type: 'door';
    cap?: number;
    closed?: boolean;
};
export type AtDoor = {
    type: 'let-in' | 'turn-away';
    identity: string;
};
export type Leave = {
    type: 'leave';
    back?: boolean;
};
/**
 * How a connection is carried to a node: on the same RTCPeerConnection, on a new one, or on a new one while the old one still carries everything.
 */
export type How = 'restart' | 'new-connection' | 'live';
export type ClientMessage = Join | Resume | Offer | View | Mute | Migrated | Refresh | Stalled | Say | Rename | Moderate | Hand | React | Connect | Watch | SendMessage | Received | AskIceServers | Ping | SetDoor | AtDoor | Leave;
export type Joined = {
    type: 'joined';
    protocol: number;
    room: string;
    peer: string;
    identity: string;
    name: string;
    resume: string;
    node: string;
    epoch: number;
    screenAudio?: boolean;
    data?: boolean;
    seq: number;
    roster: RosterEntry[];
    iceServers: RTCIceServer[];
    iceServersForMs?: number;
    permissions: Permissions;
    roomMetadata?: string;
    audience?: number;
};
/**
 * a server of before has no iceServers
 */
export type Resumed = {
    type: 'resumed';
    node: string;
    epoch: number;
    screenAudio?: boolean;
    data?: boolean;
    seq: number;
    roster: RosterEntry[];
    slots: Slot[];
    resume: string;
    mediaAlive: boolean;
    silenced?: Source[];
    iceServers?: RTCIceServer[];
    iceServersForMs?: number;
    roomMetadata?: string;
    audience?: number;
};
export type IceServers = {
    type: 'ice-servers';
    iceServers: RTCIceServer[];
    iceServersForMs?: number;
};
export type Answer = {
    type: 'answer';
    id: string;
    sdp: string;
    node: string;
    epoch: number;
    screenAudio?: boolean;
    data?: boolean;
};
export type OfferRejected = {
    type: 'offer-rejected';
    id: string;
    code?: string;
    message: string;
    epoch: number;
};
export type Lack = {
    peer: string;
    source: Source;
    codec: string;
};
/**
 * `node`: the media goes on there as it is
 */
export type Slots = {
    type: 'slots';
    slots: Slot[];
    lacks: Lack[];
    node?: string;
    epoch: number;
};
export type PeerChanged = {
    type: 'peer-joined' | 'peer-updated';
    peer: RosterEntry;
    epoch: number;
    seq: number;
};
export type PeerLeft = {
    type: 'peer-left';
    peer: string;
    epoch: number;
    seq: number;
};
/**
 * of different peers
 */
export type RosterChanges = {
    type: 'roster-changes';
    entries: RosterEntry[];
    left: string[];
    epoch: number;
    seq: number;
};
export type Roster = {
    type: 'roster';
    roster: RosterEntry[];
    epoch: number;
    seq: number;
};
/**
 * people who are not in the roster
 */
export type Audience = {
    type: 'audience';
    others: number;
    epoch: number;
};
export type Speakers = {
    type: 'speakers';
    speakers: Speaker[];
    epoch: number;
};
export type Said = {
    type: 'chat';
    peer: string;
    name: string;
    text: string;
    id?: string;
    at: number;
    seq: number;
    epoch: number;
};
export type PermissionsChanged = {
    type: 'permissions';
    permissions: Permissions;
    resume: string;
};
export type MutedBy = {
    type: 'muted-by';
    source: Source;
    by?: string;
    epoch: number;
};
export type UnmuteAsked = {
    type: 'unmute-asked';
    source: Source;
    by?: string;
    epoch: number;
};
export type Reaction = {
    peer: string;
    emoji: string;
};
export type Reactions = {
    type: 'reactions';
    reactions: Reaction[];
    epoch: number;
};
/**
 * The order to move. `live` says that the old node goes on, so that the new connection can be made while the old one carries everything.
 */
export type Restart = {
    type: 'restart';
    node: string;
    epoch: number;
    screenAudio?: boolean;
    data?: boolean;
    reason: string;
    attempts: number;
    attemptMs: number;
    live?: boolean;
    overlapMs?: number;
};
/**
 * everybody who came along has arrived
 */
export type Settled = {
    type: 'settled';
    epoch: number;
};
export type Reoffer = {
    type: 'reoffer';
    mids: string[];
    reason: string;
    epoch: number;
};
/**
 * all layers of this client that nobody shows
 */
export type Rests = {
    type: 'rests';
    resting: {
        mid: string;
        rids: string[];
    }[];
    epoch: number;
};
/**
 * `request`: the id of the refused message
 */
export type ServerError = {
    type: 'error';
    code: string;
    message: string;
    retryable: boolean;
    retryAfterMs?: number;
    request?: string;
};
export type Connected = {
    type: 'connected';
    protocol: number;
    identity: string;
    watch: boolean;
    message?: boolean;
};
export type UserPresence = {
    user: string;
    state: 'online' | 'offline' | 'unknown';
    since?: number;
    lastSeen?: number;
};
export type Presence = {
    type: 'presence';
    users: UserPresence[];
};
export type UserMessage = {
    type: 'message';
    from: string;
    name: string;
    kind: 'text' | 'ring' | 'answer' | 'app' | 'notice';
    body: unknown;
    stream: string;
    seq: number;
    room?: string;
    at: number;
};
export type MessageState = {
    type: 'message-state';
    to: string;
    stream: string;
    seq: number;
    state: 'accepted' | 'delivered' | 'offline' | 'gave_up' | 'refused';
    code?: string;
    message?: string;
};
export type Waiting = {
    type: 'waiting';
    position: number;
    estimateMs?: number;
    reason: 'full' | 'closed' | 'no_capacity';
};
/**
 * A room's door, sent to a moderator only. `inside` counts the people with a place; `line` lists the first of those who wait.
 */
export type Door = {
    type: 'door';
    cap?: number;
    closed: boolean;
    inside: number;
    length: number;
    line: {
        identity: string;
        name?: string;
        since?: number;
    }[];
};
export type Pong = {
    type: 'pong';
    t: number;
};
export type Bye = {
    type: 'bye';
    code: string;
    message: string;
};
export type ServerMessage = Joined | Resumed | IceServers | Answer | OfferRejected | Slots | PeerChanged | PeerLeft | RosterChanges | Roster | Speakers | Said | PermissionsChanged | MutedBy | UnmuteAsked | Reactions | Restart | Settled | Limited | Audience | RoomUpdated | Reoffer | Rests | ServerError | Connected | Presence | UserMessage | MessageState | Waiting | Door | Pong | Bye;
