export { attach } from './attach.js';
export { Call } from './call.js';
export { CallError } from './errors.js';
export { canMoveLiveConnection } from './capability.js';
