declare const Call_base: import("./events.js").TypedTarget<import("./events.js").CallEvents>;
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
export class Call extends Call_base {
    /** @param {CallOptions} [options] throws a CallError `bad_argument` for wrong ones */
    constructor(options?: import("./call-options.js").CallOptions | undefined);
    /** Direct messages, to people elsewhere too: see Messages. */
    messages: Messages;
    /** Messages to people in the room over data channels, for a call with the option `data`. */
    data: Data;
    /** Whether the media node is near its ceiling. Pictures are smaller or paused then, and sound is complete. */
    limited: boolean;
    /** How many others are in the room and not in the roster: in a large room, some of those who only watch. Who raises a hand or writes is in the roster. */
    audience: number;
    /** What the application says of the room. */
    roomMetadata: string;
    moderation: Moderation;
    get state(): import("./call-state.js").CallState;
    /** This client's peer id; empty before `joined`. */
    get peer(): string;
    /** This client's identity, as its token names it; empty before `joined`. */
    get identity(): string;
    get room(): string;
    /** The media node that the server named last; empty before the first. */
    get node(): string;
    get epoch(): number;
    /** Everyone in the room, this client included. */
    get roster(): import("./protocol.js").RosterEntry[];
    /** The chat lines that this client has seen, at most the newest 500. */
    get chat(): {
        id: string;
        peer: string;
        name: string;
        text: string;
        at: number;
        own: boolean;
        state: import("./chat.js").LineState;
    }[];
    /** The presence of every watched user; `unknown` until an answer has come, and after 15 s without a connection. */
    get watched(): {
        user: string;
        state: "offline" | "online" | "unknown";
        since?: number | undefined;
        lastSeen?: number | undefined;
    }[];
    get slots(): import("./protocol.js").Slot[];
    /** The pictures that this browser cannot show, because it lacks their codec. Their publishers are asked for a codec that everybody has. */
    get lacks(): import("./protocol.js").Lack[];
    /**
     * The streams that arrive and cannot be decoded, perhaps because their sender encrypts with another key, and for which nothing more is tried. A
     * stream that is shown after all is no longer among them.
     */
    get undecodable(): import("./protocol.js").Lack[];
    /**
     * Returns the stream of a peer's source. It is the same object for as long as the peer is in the room, and may be an element's srcObject
     * before it has a track.
     * @param {string} peer
     * @param {Source} source
     */
    stream(peer: string, source: Source): MediaStream;
    /**
     * Makes the connection of the first join, for which a browser takes some 50 ms, so that `join` only sends it. Does nothing once joined. `leave`
     * closes a connection that is not used.
     */
    prepare(): void;
    /**
     * Resolves when the person is in the room, perhaps after waiting in line; media follows (`state` becomes `live`). Rejects with a CallError: at
     * once with `bad_url`, `bad_token` or `bad_argument`, after which the call can be joined again, else within `joinLimitMs`.
     * @param {JoinOptions} options
     * @returns {Promise<import('./protocol.js').Joined>}
     */
    join(options: JoinOptions): Promise<import('./protocol.js').Joined>;
    /**
     * Leaves the room. The tracks that the application gave are not stopped. `back` says that the page may come again at once, so that a place in
     * a full room, or in its waiting list, is kept for 10 s.
     * @param {{back?: boolean}} [options]
     */
    leave(options?: {
        back?: boolean | undefined;
    } | undefined): void;
    /**
     * Mutes or unmutes a source. A muted source keeps its track, of which nothing is sent. An `error` event tells when the token does not allow
     * the source that is to be unmuted. Rejects with `bad_argument` for what is no source.
     * @param {Source} source
     * @param {boolean} muted
     */
    setMuted(source: Source, muted: boolean): Promise<void>;
    /**
     * Sends another track for a source, or none for null, without a new offer. Rejects with `not_published` when the token does not allow the source,
     * and with `bad_argument` for a track of another kind.
     * @param {Source} source
     * @param {MediaStreamTrack | null} track
     */
    replaceTrack(source: Source, track: MediaStreamTrack | null): Promise<void>;
    /**
     * Whether nothing is sent of a source, because it is muted, has no track, or is not allowed.
     * @param {Source} source
     */
    isMuted(source: Source): boolean;
    /**
     * Whether the token allows a source to be published; true before `joined`. `screen-audio` also needs a server that knows it, and a
     * connection that has a place for it.
     * @param {Source} source
     */
    mayPublish(source: Source): boolean;
    /**
     * Sends a direct message to everybody else in the room. Resolves with the outcome for each identity: see `messages.sendToEach`.
     * @param {unknown} body
     * @param {import('./messages.js').SendOptions} [options]
     */
    sendToAll(body: unknown, options?: import("./messages.js").SendOptions | undefined): Promise<import("./messages.js").Deliveries>;
    /**
     * Sends a chat line of text, never markup. Returns null for a blank text, before `joined`, and when the token does not allow chat, which an
     * `error` event tells. Throws a CallError `text_too_long` for more than 2000 characters.
     * @param {string} text
     */
    say(text: string): import("./chat.js").Line | null;
    /**
     * Changes the name that the others see. An `error` event tells when the token does not allow it. Throws `bad_argument` for more than 256 bytes.
     * @param {string} name
     */
    rename(name: string): void;
    /**
     * Replaces the identities, at most 500, of whom `presence` events tell whether they are online. The token needs `canWatch`: else an `error`.
     * @param {Iterable<string>} users
     */
    watch(users: Iterable<string>): void;
    /**
     * Tells the media node which sources the page shows, most important first, in device pixels. The node fills slots and chooses layers by this.
     * The first 512 count.
     * @param {Want[]} wants
     */
    setView(wants: Want[]): void;
    /**
     * Says whether an application's transform drops everything that arrives of a source. Nothing is done to repair an unreadable source.
     * @param {string} peer
     * @param {Source} source
     * @param {boolean} unreadable
     */
    setUnreadable(peer: string, source: Source, unreadable: boolean): void;
    /**
     * Resolves with pcId (grows with every new RTCPeerConnection), epoch, node, offersSent, migrations, slots, perSlot (by mid), outbound, rttMs,
     * path, ways and sentLoss; undefined before `join`.
     */
    stats(): Promise<{
        epoch: number;
        node: string;
        offersSent: number;
        migrations: {
            node: string;
            epoch: number;
            how: import("./protocol.js").How;
            attempt: number;
            gapMs: number;
            lost: import("./protocol.js").Stream[];
        }[];
        slots: import("./protocol.js").Slot[];
        perSlot: {
            [k: string]: any;
        };
        pcId: number;
        rttMs: number;
        path: import("./stats.js").Path;
        ways: Partial<Record<import("./ways.js").Way, boolean>>;
        sentLoss: number;
        outbound: {
            source: any;
            mid: string;
            rid: string;
            kind: import("./protocol.js").Kind;
            ssrc: number;
            rtxSsrc: number;
            active: boolean;
            packetsSent: number;
            bytesSent: number;
            framesEncoded: number;
            frameWidth: number;
            frameHeight: number;
            sourceWidth: number;
            sourceHeight: number;
        }[];
    } | undefined>;
    #private;
}
export type Source = import('./protocol.js').Source;
export type Want = import('./protocol.js').Want;
export type ServerMessage = import('./protocol.js').ServerMessage;
export type CallState = import('./call-state.js').CallState;
export type CallOptions = import('./call-options.js').CallOptions;
export type JoinOptions = import('./call-options.js').JoinOptions;
import { Messages } from "./messages.js";
import { Data } from "./data.js";
import { Moderation } from "./moderation.js";
export {};
