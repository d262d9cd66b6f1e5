export type Source = import('./protocol.js').Source;
export type CallError = import('./errors.js').CallError;
export type Mended = {
    node: string;
    epoch: number;
    how: import('./protocol.js').How;
    attempt: number;
    gapMs: number;
    lost: import('./protocol.js').Stream[];
};
export type Migration = {
    phase: 'started';
    node: string;
    epoch: number;
} | {
    phase: 'attempt';
    node: string;
    epoch: number;
    how: import('./protocol.js').How;
    attempt: number;
} | ({
    phase: 'done';
} & Mended);
export type Ending = {
    code: string;
    message: string;
    retryable?: boolean;
};
export type CallEvents = {
    state: {
        state: import('./call-state.js').CallState;
    };
    waiting: {
        position: number;
        reason: 'full' | 'closed' | 'no_capacity';
        estimateMs?: number;
    };
    joined: import('./protocol.js').Joined;
    roster: {
        roster: import('./protocol.js').RosterEntry[];
    };
    audience: {
        audience: number;
    };
    slot: import('./slots.js').SlotChange;
    lacks: {
        lacks: import('./protocol.js').Lack[];
    };
    undecodable: {
        undecodable: import('./protocol.js').Lack[];
    };
    limited: {
        limited: boolean;
    };
    "room-metadata": {
        metadata: string;
    };
    speakers: {
        speakers: import('./protocol.js').Speaker[];
    };
    chat: {
        line: import('./chat.js').Line;
    };
    data: import('./data.js').DataMessage;
    "data-open": {
        open: boolean;
    };
    reactions: {
        reactions: import('./protocol.js').Reaction[];
    };
    "muted-by": {
        source: Source;
        by: string;
    };
    "unmute-asked": {
        source: Source;
        by: string;
    };
    permissions: {
        permissions: import('./protocol.js').Permissions;
    };
    door: {
        door: import('./protocol.js').Door;
    };
    presence: {
        changes: import('./protocol.js').UserPresence[];
    };
    stalled: {
        silentMs: number;
    };
    migration: Migration;
    continued: {
        node: string;
        epoch: number;
    };
    mended: Mended;
    error: CallError;
    left: Ending;
};
export type PresenceEvents = {
    state: {
        state: import('./presence.js').PresenceState;
    };
    presence: {
        changes: import('./protocol.js').UserPresence[];
    };
    error: CallError;
    closed: Ending;
};
export type MessagesEvents = {
    message: {
        from: string;
        name: string;
        kind: 'text' | 'ring' | 'answer' | 'app' | 'notice';
        body: any;
        room?: string;
        at: number;
    };
    accepted: {
        to: string;
        seq: number;
    };
};
/**
 * An EventTarget whose listeners know the `detail` of each event. Give it the events, such as CallEvents.
 */
export type Typed<E> = {
    addEventListener<K extends keyof E>(type: K, listener: (event: CustomEvent<E[K]>) => void, options?: boolean | AddEventListenerOptions): void;
    removeEventListener<K_1 extends keyof E>(type: K_1, listener: (event: CustomEvent<E[K_1]>) => void, options?: boolean | EventListenerOptions): void;
} & EventTarget;
/**
 * The constructor of Typed, to extend.
 */
export type TypedTarget<E> = new () => Typed<E>;
