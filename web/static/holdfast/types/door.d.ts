/** @typedef {import('./protocol.js').ClientMessage} ClientMessage */
/** Event of the call: `door` {door}, the server's answer to all that is said and asked here. Nobody is told of the door unasked. */
export class Door {
    private constructor();
    /** As last heard: `{cap?, closed, inside, length, line: [{identity, name?, since?}]}`. Null before, and for who does not run the room. */
    get latest(): import("./protocol.js").Door | null;
    /** Asks the server for the door, unless a question is unanswered or the session is not open. No `error` tells that the store is away. */
    ask(): void;
    /**
     * Changes the number of places, or closes or opens the room. A setting that is left out stays as it is.
     * @param {{cap?: number, closed?: boolean}} change `cap` -1: any number of people. A closed room is entered by whom one lets in
     */
    set({ cap, closed }: {
        cap?: number;
        closed?: boolean;
    }): void;
    /**
     * Lets a waiting user in before all others, as soon as there is a place.
     * @param {string} identity
     */
    letIn(identity: string): void;
    /** @param {string} identity */
    turnAway(identity: string): void;
    #private;
}
export type ClientMessage = import('./protocol.js').ClientMessage;
