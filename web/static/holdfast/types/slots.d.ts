/**
 * @param {string} key
 * @returns {import('./protocol.js').Stream}
 */
export function streamOf(key: string): import('./protocol.js').Stream;
export function slotKey(peer: string, source: string): string;
export class SlotTable {
    /** The slots as the server last sent them. */
    get slots(): {
        mid: string;
        kind: import("./protocol.js").Kind;
        peer: string;
        source: "" | import("./protocol.js").Source;
        paused?: boolean | undefined;
    }[];
    /** @returns {ReadonlySet<string>} mids of this connection that carried somebody at any time */
    get used(): ReadonlySet<string>;
    /**
     * The same object for as long as the person stays; without a track while no slot carries the source.
     * @param {string} peer
     * @param {Source} source
     */
    stream(peer: string, source: Source): MediaStream;
    /**
     * After a new RTCPeerConnection: puts its tracks where the old ones were.
     * @param {Lane[]} lanes
     */
    bind(lanes: Lane[]): void;
    /**
     * Does what `bind` and `apply` do in one step, so that no stream shows another person in between.
     * @param {Lane[]} lanes
     * @param {Slot[]} slots
     */
    rebind(lanes: Lane[], slots: Slot[]): SlotChange[];
    /**
     * Returns what changed for a page.
     * @param {Slot[]} slots
     * @returns {SlotChange[]}
     */
    apply(slots: Slot[]): SlotChange[];
    /**
     * Returns what changed for a page: the table that empties the slots may come later, and says no more then.
     * @param {string} peer
     * @returns {SlotChange[]}
     */
    forget(peer: string): SlotChange[];
    /**
     * Returns, by slotKey, the occupied slots that have a lane on the present connection.
     * @returns {Map<string, {slot: Slot, lane: Lane}>}
     */
    occupied(): Map<string, {
        slot: Slot;
        lane: Lane;
    }>;
    /**
     * Whether a stream is in a slot, or a slot of its kind is free.
     * @param {import('./protocol.js').Stream} stream
     */
    hasPlace({ peer, source }: import('./protocol.js').Stream): boolean;
    #private;
}
export type Slot = import('./protocol.js').Slot;
export type Source = import('./protocol.js').Source;
export type Kind = import('./protocol.js').Kind;
export type Lane = {
    mid: string;
    kind: Kind;
    track: MediaStreamTrack;
    receiver: RTCRtpReceiver;
};
/**
 * `live`: a slot carries the source. `paused`: the path is too narrow for it now.
 */
export type SlotChange = {
    peer: string;
    source: Source;
    kind: Kind;
    mid: string;
    stream: MediaStream;
    live: boolean;
    paused: boolean;
};
