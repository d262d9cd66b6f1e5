/**
 * Gives the transform of one sender (`track` is null) or receiver of encoded frames, such as an RTCRtpScriptTransform.
 * @callback CreateTransform
 * @param {'send' | 'receive'} side
 * @param {'audio' | 'video'} kind
 * @param {MediaStreamTrack | null} track that the receiver gives
 * @returns {object | null} null for none
 */
/** @typedef {'VP8' | 'VP9' | 'AV1' | 'H264'} VideoCodec */
/** @typedef {string | (() => string | Promise<string>)} TokenSource an access token, or what fetches one */
/** @typedef {new (url: string, protocols: string) => WebSocket} SocketMaker */
/**
 * @typedef {object} CallOptions
 * @property {number} [audioSlots] how many people can be heard at once (6)
 * @property {number} [videoSlots] how many pictures can be shown at once (12)
 * @property {boolean} [simulcast] send the camera in up to three sizes (true)
 * @property {boolean} [moveLive] carry the live connection to another node; by default where the browser is known to be able to
 * @property {VideoCodec} [videoCodec] what pictures are sent in, where the browser can (VP8, which every browser shows)
 * @property {string} [scalabilityMode] such as `L3T3_KEY`: the camera is one stream in layers instead of several, where the browser can; only with VP9 and AV1
 * @property {CreateTransform} [createTransform] called for each sender and receiver of every connection, before anything is sent; then only Opus, VP8 and VP9 are used
 * @property {boolean} [data] data channels, for `call.data` (false); all media nodes must have a version with them
 * @property {import('./faults.js').Faults} [faults] for tests only
 * @property {SocketMaker} [WebSocket] a stand-in, for tests only
 */
/**
 * @typedef {object} JoinOptions
 * @property {string | URL} url a signaling node or the balancer before them: http(s) or ws(s); the path is /ws unless given
 * @property {TokenSource} token an access token, or a function that fetches one (asked again when a session must be made anew)
 * @property {string} [room] must be the token's
 * @property {string} [name] shown to the others; the token's name unless given
 * @property {boolean} [wait] in line for a place when the room is full or closed (false): `waiting` events tell the place
 * @property {MediaStream} [stream] the microphone and the camera; not stopped when the call ends
 * @property {number} [joinLimitMs] how long to try (15000), not counting time in which the cluster waits for its store
 */
/** @typedef {{adopt: (pc: RTCPeerConnection) => void}} DataChannels gives a new connection its data channels */
/**
 * @typedef {object} MediaOptions
 * @property {(message: import('./protocol.js').ClientMessage) => boolean} send
 * @property {(offer: import('./protocol.js').Offer) => boolean} sendAhead sends it behind a join that waits for its answer; false when none waits
 * @property {() => boolean} isOpen
 * @property {(signal: AbortSignal) => Promise<void>} socketOpen
 * @property {boolean} canMove
 * @property {boolean} keepsIce whether the browser is known to reach another node without an ICE restart
 * @property {number} audioSlots
 * @property {number} videoSlots
 * @property {boolean} simulcast
 * @property {VideoCodec} [videoCodec]
 * @property {string} [scalabilityMode]
 * @property {CreateTransform} [createTransform]
 * @property {DataChannels | null} [data] null for none
 * @property {import('./faults.js').Faults} faults
 * @property {() => boolean} screenAudio whether the server takes that source
 * @property {(stream: import('./protocol.js').Stream) => boolean} isExpected
 * @property {() => number} people
 */
/**
 * What media is made of: the options over their defaults.
 * @param {CallOptions} options
 */
export function mediaOptions({ audioSlots, videoSlots, simulcast, moveLive, videoCodec, scalabilityMode, createTransform, faults }: CallOptions): {
    canMove: boolean;
    keepsIce: boolean;
    audioSlots: number;
    videoSlots: number;
    simulcast: boolean;
    videoCodec: VideoCodec | undefined;
    scalabilityMode: string | undefined;
    createTransform: CreateTransform | undefined;
    faults: import("./faults.js").Faults;
};
/**
 * Gives the transform of one sender (`track` is null) or receiver of encoded frames, such as an RTCRtpScriptTransform.
 */
export type CreateTransform = (side: 'send' | 'receive', kind: 'audio' | 'video', track: MediaStreamTrack | null) => object | null;
export type VideoCodec = 'VP8' | 'VP9' | 'AV1' | 'H264';
/**
 * an access token, or what fetches one
 */
export type TokenSource = string | (() => string | Promise<string>);
export type SocketMaker = new (url: string, protocols: string) => WebSocket;
export type CallOptions = {
    /**
     * how many people can be heard at once (6)
     */
    audioSlots?: number | undefined;
    /**
     * how many pictures can be shown at once (12)
     */
    videoSlots?: number | undefined;
    /**
     * send the camera in up to three sizes (true)
     */
    simulcast?: boolean | undefined;
    /**
     * carry the live connection to another node; by default where the browser is known to be able to
     */
    moveLive?: boolean | undefined;
    /**
     * what pictures are sent in, where the browser can (VP8, which every browser shows)
     */
    videoCodec?: VideoCodec | undefined;
    /**
     * such as `L3T3_KEY`: the camera is one stream in layers instead of several, where the browser can; only with VP9 and AV1
     */
    scalabilityMode?: string | undefined;
    /**
     * called for each sender and receiver of every connection, before anything is sent; then only Opus, VP8 and VP9 are used
     */
    createTransform?: CreateTransform | undefined;
    /**
     * data channels, for `call.data` (false); all media nodes must have a version with them
     */
    data?: boolean | undefined;
    /**
     * for tests only
     */
    faults?: import("./faults.js").Faults | undefined;
    /**
     * a stand-in, for tests only
     */
    WebSocket?: SocketMaker | undefined;
};
export type JoinOptions = {
    /**
     * a signaling node or the balancer before them: http(s) or ws(s); the path is /ws unless given
     */
    url: string | URL;
    /**
     * an access token, or a function that fetches one (asked again when a session must be made anew)
     */
    token: TokenSource;
    /**
     * must be the token's
     */
    room?: string | undefined;
    /**
     * shown to the others; the token's name unless given
     */
    name?: string | undefined;
    /**
     * in line for a place when the room is full or closed (false): `waiting` events tell the place
     */
    wait?: boolean | undefined;
    /**
     * the microphone and the camera; not stopped when the call ends
     */
    stream?: MediaStream | undefined;
    /**
     * how long to try (15000), not counting time in which the cluster waits for its store
     */
    joinLimitMs?: number | undefined;
};
/**
 * gives a new connection its data channels
 */
export type DataChannels = {
    adopt: (pc: RTCPeerConnection) => void;
};
export type MediaOptions = {
    send: (message: import('./protocol.js').ClientMessage) => boolean;
    /**
     * sends it behind a join that waits for its answer; false when none waits
     */
    sendAhead: (offer: import('./protocol.js').Offer) => boolean;
    isOpen: () => boolean;
    socketOpen: (signal: AbortSignal) => Promise<void>;
    canMove: boolean;
    /**
     * whether the browser is known to reach another node without an ICE restart
     */
    keepsIce: boolean;
    audioSlots: number;
    videoSlots: number;
    simulcast: boolean;
    videoCodec?: VideoCodec | undefined;
    scalabilityMode?: string | undefined;
    createTransform?: CreateTransform | undefined;
    /**
     * null for none
     */
    data?: DataChannels | null | undefined;
    faults: import('./faults.js').Faults;
    /**
     * whether the server takes that source
     */
    screenAudio: () => boolean;
    isExpected: (stream: import('./protocol.js').Stream) => boolean;
    people: () => number;
};
