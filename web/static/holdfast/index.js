export { attach } from './attach.js';
export { Call } from './call.js';
export { CallError } from './errors.js';
export { Messages } from './messages.js';
export { EMOJIS } from './emojis.js';
export { Presence } from './presence.js';
export { canMoveLiveConnection } from './capability.js';
