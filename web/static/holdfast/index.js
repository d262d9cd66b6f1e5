// What an application may import. Everything else is the library's own, and may change with any version.

export { attach } from './attach.js';
export { Call } from './call.js';
export { canMoveLiveConnection } from './capability.js';
export { EMOJIS } from './emojis.js';
export { CallError } from './errors.js';
export { Messages } from './messages.js';
export { Presence } from './presence.js';
export { version } from './version.js';

/** @typedef {import('./call-options.js').CallOptions} CallOptions */
/** @typedef {import('./call-options.js').CreateTransform} CreateTransform */
/** @typedef {import('./call-options.js').JoinOptions} JoinOptions */
/** @typedef {import('./call-options.js').TokenSource} TokenSource */
/** @typedef {import('./call-options.js').VideoCodec} VideoCodec */
/** @typedef {import('./call-state.js').CallState} CallState */
/** @typedef {import('./chat.js').Line} Line */
/** @typedef {import('./data.js').DataMessage} DataMessage */
/** @typedef {import('./data.js').DataOptions} DataOptions */
/** @typedef {import('./events.js').CallEvents} CallEvents */
/** @typedef {import('./events.js').MessagesEvents} MessagesEvents */
/** @typedef {import('./events.js').PresenceEvents} PresenceEvents */
/** @typedef {import('./messages.js').Deliveries} Deliveries */
/** @typedef {import('./messages.js').Delivery} Delivery */
/** @typedef {import('./messages.js').SendOptions} SendOptions */
/** @typedef {import('./presence.js').PresenceOptions} PresenceOptions */
/** @typedef {import('./presence.js').PresenceState} PresenceState */
/** @typedef {import('./protocol.js').Act} Act */
/** @typedef {import('./protocol.js').Door} DoorState */
/** @typedef {import('./protocol.js').Joined} Joined */
/** @typedef {import('./protocol.js').Permissions} Permissions */
/** @typedef {import('./protocol.js').RosterEntry} RosterEntry */
/** @typedef {import('./protocol.js').Slot} Slot */
/** @typedef {import('./protocol.js').Source} Source */
/** @typedef {import('./protocol.js').Speaker} Speaker */
/** @typedef {import('./protocol.js').UserPresence} UserPresence */
/** @typedef {import('./protocol.js').Want} Want */
/** @typedef {import('./slots.js').SlotChange} SlotChange */
