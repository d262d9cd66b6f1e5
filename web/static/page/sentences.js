// What happened, and what to do.

import { CallError } from '../holdfast/errors.js';

/** @type {Record<string, string>} */
const ofCalls = {
  unreachable: 'The server cannot be reached. Check your connection, then join again.',
  room_full: 'This room is full. Try again when somebody has left.',
  token_expired: 'This link has expired. Ask whoever invited you for a new one.',
  bad_token: 'This link is not valid here. Ask whoever invited you for a new one.',
  no_token: 'The server gave out no access. Try again in a moment.',
  superseded: 'The call goes on in another tab or window of yours. Join again to bring it here.',
  kicked: 'Somebody who runs this room removed you from it. Ask them before you join again.',
  resume_expired: 'You were away too long, and your place was given up. Join again.',
  no_capacity: 'There is no room for another call just now. Try again in a moment.',
  no_nodes: 'No media server is up just now. Try again in a moment.',
  store_unavailable: 'The room cannot be found just now. Running calls go on; you are let in as soon as it is found.',
  node_unreachable: 'The media server of this room does not answer. Try again in a moment.',
  not_ready: 'The server is starting. Try again in a moment.',
  too_many_sockets: 'Too many connections from here at once. Wait a moment, then join again.',
  bad_key: 'The key in this link is cut or damaged. Open the whole link that you were sent, with everything behind the #.',
  cannot_encrypt: 'This browser cannot encrypt calls from end to end. Use a current version of Chrome, Edge, Firefox or Safari.',
  internal: 'Something went wrong on the server. Try again.',
};

/**
 * The error's own message for a code without a sentence here.
 * @param {{code: string, message: string}} error
 */
export function ofCall({ code, message }) {
  return ofCalls[code] ?? message;
}

/** @typedef {'camera' | 'microphone' | 'camera and microphone'} Device */

/**
 * By the name of getUserMedia's error.
 * @type {Record<string, (device: Device) => string>}
 */
const ofDevices = {
  NotAllowedError: (device) => `This page may not use your ${device}. Allow it beside the address, then try again.`,
  NotFoundError: (device) => `No ${device} was found. Plug one in, then try again.`,
  NotReadableError: (device) => `Your ${device} is in use by another program. Close that program, then try again.`,
  OverconstrainedError: (device) => `The ${device} you chose last time is not there. Choose another one.`,
  AbortError: (device) => `Your ${device} did not start. Try again.`,
  InsecureError: (device) => `The browser gives the ${device} to secure pages only. Open this page over https.`,
};

/**
 * @param {unknown} error of getUserMedia
 * @param {Device} device
 */
export function ofDevice(error, device) {
  const name = error instanceof Error ? error.name : '';
  return (ofDevices[name] ?? ofDevices.AbortError)(device);
}

/** @param {unknown} error of getDisplayMedia, or of the call, which does not send it */
export function ofScreen(error) {
  if (error instanceof CallError) return error.message;
  const name = error instanceof Error ? error.name : '';
  if (name === 'NotFoundError') return 'There is nothing here that can be shared.';
  if (name === 'NotReadableError') return 'The system does not let this browser record the screen. Allow it in the system settings.';
  return 'The screen could not be shared. Try again.';
}

/**
 * Why what somebody sends is not shown in an encrypted call; empty when it is.
 * @param {import('./encryption.js').State} state
 */
export function ofEncryption(state) {
  if (state === 'wrong-key') return 'Encrypted with another key than yours. Open the whole link that you were sent, with everything behind the #.';
  return state === 'clear' ? 'Not shown: not encrypted, unlike this call.' : '';
}

/** Of pictures that come and that nothing can be made of, where this page does not encrypt. */
export const undecoded = 'This picture cannot be decoded. If the call is encrypted, open the whole link that you were sent, with everything behind the #.';

/** @param {string} codec */
export const lacked = (codec) => `This browser cannot show ${codec}. The sender was asked for another kind of picture; if none comes, use another browser.`;

/**
 * What did not come back.
 * @param {unknown[]} [lost]
 */
export function without(lost = []) {
  if (lost.length === 0) return '';
  return lost.length === 1 ? ', one stream is missing' : `, ${lost.length} streams are missing`;
}
