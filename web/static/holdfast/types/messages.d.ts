declare const Messages_base: import("./events.js").TypedTarget<import("./events.js").MessagesEvents>;
/**
 * Sends each message once, in order, also past the death of the signaling node, and says what became of it; drops what comes again.
 *
 * Events:
 * - `message` {from, name, kind, body, room?, at}: `body` is text, never markup, or what was sent
 * - `accepted` {to, seq}: the server keeps it and tries
 */
export class Messages extends Messages_base {
    private constructor();
    /** Whom the token lets this client write to: `anywhere`, `room`, or '' for nobody. It is known once the first connection is open. */
    get scope(): "" | "room" | "anywhere";
    /**
     * Resolves with what became of the message: `delivered` (a client of the user has it), `offline`, or `gave_up` (nobody answered within 20 s: it
     * may have arrived). Rejects with a CallError if it is refused, and with `unreachable` after a minute without a connection; it is not sent then.
     * @param {string} to an identity
     * @param {unknown} body text for `text`, else anything but null that JSON carries, 8 KiB at most
     * @param {SendOptions} [options]
     * @returns {Promise<Delivery>}
     */
    send(to: string, body: unknown, options?: SendOptions | undefined): Promise<Delivery>;
    /**
     * Sends one message to several users, at the pace that the server takes. Resolves with the outcome for each user: a delivery, or a CallError.
     * @param {Iterable<string>} users identities
     * @param {unknown} body
     * @param {SendOptions} [options]
     * @returns {Promise<Deliveries>}
     */
    sendToEach(users: Iterable<string>, body: unknown, options?: SendOptions | undefined): Promise<Deliveries>;
    #private;
}
export type UserMessage = import('./protocol.js').UserMessage;
export type MessageState = import('./protocol.js').MessageState;
export type Delivery = 'delivered' | 'offline' | 'gave_up';
/**
 * `kind`: what it is for; `ring` asks into a room, `answer` answers that, `app` is the application's own.
 */
export type SendOptions = {
    kind?: 'text' | 'ring' | 'answer' | 'app';
};
/**
 * What became of a message for each receiver.
 */
export type Deliveries = Map<string, Delivery | CallError>;
/**
 * A message for which not every receiver has an outcome yet.
 */
export type Letter = {
    /**
     * to those who have not answered
     */
    message: import('./protocol.js').SendMessage;
    became: Deliveries;
    resolve: (became: Deliveries) => void;
    /**
     * whether it was ever sent
     */
    said: boolean;
    limit: ReturnType<typeof setTimeout>;
};
import { CallError } from "./errors.js";
export {};
