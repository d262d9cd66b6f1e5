// Holdfast's client library: everything an application needs.

export { Call } from './call.js';
export { CallError } from './errors.js';
export { canMoveLiveConnection } from './capability.js';
