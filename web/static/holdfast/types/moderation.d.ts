/** @typedef {import('./protocol.js').Source} Source */
/** @typedef {import('./protocol.js').Act} Act */
/**
 * @typedef {object} Surroundings
 * @property {(message: import('./protocol.js').ClientMessage) => boolean | undefined} send
 * @property {(message: import('./protocol.js').ClientMessage) => void} sendOrKeep now, or when the socket is back
 * @property {(source: Source) => void} mute one's own source
 * @property {(source: Source) => boolean} isMuted
 * @property {() => import('./protocol.js').Joined | null} me
 */
/**
 * Events of the call:
 * - `reactions` {reactions: [{peer, emoji}]}: of one moment, one's own too
 * - `muted-by` {source, by}: somebody who runs the room turned this source off; `by` may be empty. One may unmute
 * - `unmute-asked` {source, by}
 * - `permissions` {permissions}: one runs the room now, or no longer
 * - `door` {door}: see Door
 */
export class Moderation {
    private constructor();
    door: Door;
    /** Whether this client's permissions let it moderate the room. */
    get allowed(): boolean;
    /**
     * Asks the server for a moderator's act: `mute`, `ask-unmute`, `lower-hand`, `remove`, `grant`, `give-up` or `end-call`. `mute` and `lower-hand` mean
     * everybody else when no peer is named. An `error` event, whose `about` is `moderate`, tells what cannot be done.
     * @param {Act} act
     * @param {string} [peer]
     * @param {Source} [source] of `mute` and `ask-unmute`
     */
    act(act: Act, peer?: string | undefined, source?: import("./protocol.js").Source | undefined): void;
    /**
     * Raises or lowers one's own hand. The roster shows it as `handRaised` once the server has told it to everybody.
     * @param {boolean} raised
     */
    raiseHand(raised: boolean): void;
    /**
     * Sends a reaction. The event `reactions` shows it once the server has told it to everybody.
     * @param {typeof import('./emojis.js').EMOJIS[number]} emoji
     */
    react(emoji: typeof import('./emojis.js').EMOJIS[number]): void;
    #private;
}
export type Source = import('./protocol.js').Source;
export type Act = import('./protocol.js').Act;
export type Surroundings = {
    send: (message: import('./protocol.js').ClientMessage) => boolean | undefined;
    /**
     * now, or when the socket is back
     */
    sendOrKeep: (message: import('./protocol.js').ClientMessage) => void;
    /**
     * one's own source
     */
    mute: (source: Source) => void;
    isMuted: (source: Source) => boolean;
    me: () => import('./protocol.js').Joined | null;
};
import { Door } from "./door.js";
