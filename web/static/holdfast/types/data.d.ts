export class Data {
    /**
     * @param {boolean} enabled
     * @param {{heard: (message: DataMessage) => void, changed: (open: boolean) => void, may: () => boolean}} call
     */
    constructor(enabled: boolean, { heard, changed, may }: {
        heard: (message: DataMessage) => void;
        changed: (open: boolean) => void;
        may: () => boolean;
    });
    /** Whether messages go out at once. It stays true while the connection moves to another node, although what is sent then may be lost. */
    get open(): boolean;
    /**
     * Sends a message to the others in the room, or to some of them. Returns false when it is not sent: the call has no `data`, too much waits, or
     * the message is lossy and the channels are not open. Who has no open channels misses it. Throws a CallError: `not_sent` when the token does not
     * allow it, `data_too_long` for more than 15 KiB, and `bad_argument`.
     * @param {Uint8Array | string} payload a text is sent as UTF-8
     * @param {DataOptions} [options]
     */
    send(payload: Uint8Array | string, options?: DataOptions | undefined): boolean;
    /** @param {RTCPeerConnection} pc a new connection, before its first offer */
    adopt(pc: RTCPeerConnection): void;
    #private;
}
/**
 * `to` has peers (everybody else unless given); `reliable` is true unless given
 */
export type DataOptions = {
    to?: string[];
    topic?: string;
    reliable?: boolean;
};
/**
 * `peer` and `identity` are the sender's, and empty for an application's server
 */
export type DataMessage = {
    peer: string;
    identity: string;
    topic: string;
    payload: Uint8Array;
    reliable: boolean;
};
export type Pair = {
    reliable: RTCDataChannel;
    lossy: RTCDataChannel;
};
