declare const Presence_base: import("./events.js").TypedTarget<import("./events.js").PresenceEvents>;
/** @typedef {import('./protocol.js').UserPresence} UserPresence */
/** @typedef {'idle' | 'connecting' | 'connected' | 'reconnecting' | 'closed'} PresenceState */
/**
 * @typedef {object} PresenceOptions
 * @property {string | URL} url as a call's
 * @property {import('./call-options.js').TokenSource} token any access token with an identity; a function is asked for each connection
 * @property {number} [connectLimitMs] how long to try for the first connection; without it until `close`
 */
/**
 * Events, each a CustomEvent:
 * - `state` {state}
 * - `presence` {changes}: the watched users of whom something else is known now
 * - `error` CallError: told; it goes on trying
 * - `closed` {code, message}: it is over, by `close` or because the server refuses
 */
export class Presence extends Presence_base {
    /** @param {{WebSocket?: import('./call-options.js').SocketMaker}} [options] a stand-in, for tests only */
    constructor(options?: {
        WebSocket?: import("./call-options.js").SocketMaker | undefined;
    } | undefined);
    /** Direct messages: see Messages. */
    messages: Messages;
    get state(): PresenceState;
    /** The user's identity; empty before the first connection. */
    get identity(): string;
    /** The presence of every watched user; `unknown` until an answer has come, and after 15 s without a connection. */
    get watched(): {
        user: string;
        state: "offline" | "online" | "unknown";
        since?: number | undefined;
        lastSeen?: number | undefined;
    }[];
    /**
     * Resolves when the user is online for the first time. Rejects with a CallError: at once with `bad_url`, `bad_token` or `bad_argument`; when the
     * server refuses for good; after `close`; and with `unreachable` after `connectLimitMs`, if that is given.
     * @param {PresenceOptions} options
     * @returns {Promise<void>}
     */
    connect(options: PresenceOptions): Promise<void>;
    /**
     * Replaces the watched identities. Throws a CallError for more than 500. Without `canWatch` in the token an `error` event tells so.
     * @param {Iterable<string>} users
     */
    watch(users: Iterable<string>): void;
    /** Ends presence. The user is shown as offline at once, unless another tab is open. */
    close(): void;
    #private;
}
export type UserPresence = import('./protocol.js').UserPresence;
export type PresenceState = 'idle' | 'connecting' | 'connected' | 'reconnecting' | 'closed';
export type PresenceOptions = {
    /**
     * as a call's
     */
    url: string | URL;
    /**
     * any access token with an identity; a function is asked for each connection
     */
    token: import('./call-options.js').TokenSource;
    /**
     * how long to try for the first connection; without it until `close`
     */
    connectLimitMs?: number | undefined;
};
import { Messages } from "./messages.js";
export {};
