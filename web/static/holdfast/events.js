// The events of the library, for the type checker: the `detail` of each by its name. The file has no code.

/** @typedef {import('./protocol.js').Source} Source */
/** @typedef {import('./errors.js').CallError} CallError */
/** @typedef {{node: string, epoch: number, how: import('./protocol.js').How, attempt: number, gapMs: number, lost: import('./protocol.js').Stream[]}} Mended */
/** @typedef {{phase: 'started', node: string, epoch: number} | {phase: 'attempt', node: string, epoch: number, how: import('./protocol.js').How, attempt: number} | ({phase: 'done'} & Mended)} Migration */
/** @typedef {{code: string, message: string, retryable?: boolean}} Ending */

/**
 * @typedef {object} CallEvents
 * @property {{state: import('./call-state.js').CallState}} state
 * @property {{position: number, reason: 'full' | 'closed' | 'no_capacity', estimateMs?: number}} waiting
 * @property {import('./protocol.js').Joined} joined
 * @property {{roster: import('./protocol.js').RosterEntry[]}} roster
 * @property {{audience: number}} audience
 * @property {import('./slots.js').SlotChange} slot
 * @property {{lacks: import('./protocol.js').Lack[]}} lacks
 * @property {{undecodable: import('./protocol.js').Lack[]}} undecodable
 * @property {{limited: boolean}} limited
 * @property {{metadata: string}} room-metadata
 * @property {{speakers: import('./protocol.js').Speaker[]}} speakers
 * @property {{line: import('./chat.js').Line}} chat
 * @property {import('./data.js').DataMessage} data
 * @property {{open: boolean}} data-open
 * @property {{reactions: import('./protocol.js').Reaction[]}} reactions
 * @property {{source: Source, by: string}} muted-by
 * @property {{source: Source, by: string}} unmute-asked
 * @property {{permissions: import('./protocol.js').Permissions}} permissions
 * @property {{door: import('./protocol.js').Door}} door
 * @property {{changes: import('./protocol.js').UserPresence[]}} presence
 * @property {{silentMs: number}} stalled
 * @property {Migration} migration
 * @property {{node: string, epoch: number}} continued
 * @property {Mended} mended
 * @property {CallError} error
 * @property {Ending} left
 */

/**
 * @typedef {object} PresenceEvents
 * @property {{state: import('./presence.js').PresenceState}} state
 * @property {{changes: import('./protocol.js').UserPresence[]}} presence
 * @property {CallError} error
 * @property {Ending} closed
 */

/**
 * @typedef {object} MessagesEvents
 * @property {{from: string, name: string, kind: 'text' | 'ring' | 'answer' | 'app' | 'notice', body: any, room?: string, at: number}} message
 * @property {{to: string, seq: number}} accepted
 */

/**
 * An EventTarget whose listeners know the `detail` of each event. Give it the events, such as CallEvents.
 * @template E
 * @typedef {{
 *   addEventListener<K extends keyof E>(type: K, listener: (event: CustomEvent<E[K]>) => void, options?: boolean | AddEventListenerOptions): void,
 *   removeEventListener<K extends keyof E>(type: K, listener: (event: CustomEvent<E[K]>) => void, options?: boolean | EventListenerOptions): void,
 * } & EventTarget} Typed
 */

/**
 * The constructor of Typed, to extend.
 * @template E
 * @typedef {new () => Typed<E>} TypedTarget
 */

export {};
