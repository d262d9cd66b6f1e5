// What happened, and what to do.

import { CallError } from '../holdfast/errors.js';

/**
 * What passes by itself.
 * @type {Record<string, string>}
 */
const passing = {
  no_token: 'The server gave out no access.',
  no_capacity: 'There is no room for another call just now.',
  no_nodes: 'No media server is up just now.',
  node_unreachable: 'The media server of this room does not answer.',
  not_ready: 'The server is starting.',
  too_many_sockets: 'There are too many connections from here at once.',
};

/** @type {Record<string, string>} */
const ofCalls = {
  unreachable: 'The server cannot be reached. Check your connection, then join again.',
  room_full: 'This room is full. Try again when somebody has left.',
  room_closed: 'This room is closed. Try again when somebody who runs it has opened it.',
  turned_away: 'Somebody who runs this room did not let you in.',
  token_expired: 'This link has expired. Ask whoever invited you for a new one.',
  bad_token: 'This link is not valid here. Ask whoever invited you for a new one.',
  needs_link: 'Joining needs a link with an access token. Open the one that you were sent.',
  superseded: 'The call goes on in another tab or window of yours. Join again to bring it here.',
  kicked: 'Somebody who runs this room removed you from it. Ask them before you join again.',
  resume_expired: 'You were away too long, and your place was given up. Join again.',
  store_unavailable: 'The room cannot be found just now. Running calls go on; you are let in as soon as it is found.',
  bad_key: 'The key in this link is cut or damaged. Open the whole link that you were sent, with everything behind the #.',
  cannot_encrypt: 'This browser cannot encrypt calls from end to end. Use a current version of Chrome, Edge, Firefox or Safari.',
  internal: 'Something went wrong on the server. Try again.',
};

/**
 * The error's own message for a code without a sentence here.
 * @param {{code: string, message: string}} error
 */
export function ofCall({ code, message }) {
  return code in passing ? `${passing[code]} Try again in a moment.` : ofCalls[code] ?? message;
}

/**
 * While the page goes on trying by itself.
 * @param {{code: string, message: string}} error
 */
export function whileTrying(error) {
  return error.code in passing ? `${passing[error.code]} Trying again…` : ofCall(error);
}

/** @param {'microphone' | 'camera' | 'screen'} source that the token forbids */
export const forbidden = (source) => `Your link does not allow ${{ microphone: 'speaking', camera: 'a camera', screen: 'sharing the screen' }[source]}.`;

/**
 * Before joining; empty when both are allowed.
 * @param {{microphone: boolean, camera: boolean}} allowed
 */
export function ofGrant({ microphone, camera }) {
  if (microphone && camera) return '';
  if (microphone) return 'With this link you can speak, but show no camera.';
  return camera ? 'With this link you can show your camera, but not speak.' : 'With this link you can watch and listen. Nobody sees or hears you.';
}

/**
 * Each name keeps its direction to itself.
 * @param {string[] | null} names of who is in the room; null when nobody knows
 */
export function whoIsHere(names) {
  if (!names) return '';
  const [one, two, ...more] = names.map((name) => `\u2068${name}\u2069`);
  if (!one) return 'Nobody is here yet.';
  if (!two) return `${one} is here.`;
  return more.length === 0 ? `${one} and ${two} are here.` : `${one}, ${two} and ${more.length === 1 ? 'one other' : `${more.length} others`} are here.`;
}

export const noInvitation = 'There is no invitation link here. Invite people from the application that brought you.';

/**
 * A title and a sentence.
 * @param {{position: number, reason: string, estimateMs?: number}} place in a line
 * @returns {[string, string]}
 */
export function ofPlace({ position, reason, estimateMs }) {
  const title = position === 1 ? 'You are next' : `You are number ${position} in line`;
  if (reason === 'closed') return ['Waiting to be let in', 'The room is closed. You are let in by somebody who runs it.'];
  if (reason === 'no_capacity') return [title, 'All servers are busy just now. You are let in as soon as one has room for this call.'];
  return [title, `The room is full. You enter by yourself when somebody leaves${estimateMs ? `, in ${about(estimateMs)} at the present pace` : ''}.`];
}

/** @param {number} ms */
function about(ms) {
  const minutes = Math.round(ms / 60_000);
  if (minutes < 1) return 'less than a minute';
  return minutes === 1 ? 'about a minute' : `about ${minutes} minutes`;
}

/** @typedef {'camera' | 'microphone' | 'camera and microphone'} Device */

/**
 * By the name of getUserMedia's error.
 * @type {Record<string, (device: Device) => string>}
 */
const ofDevices = {
  NotAllowedError: (device) => `Your ${device} ${device.includes(' and ') ? 'are' : 'is'} blocked. Click the icon in the address bar to allow ${device.includes(' and ') ? 'them' : 'it'}.`,
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

/**
 * @param {import('../holdfast/protocol.js').Source} source
 * @param {string} by who runs the room; may be empty
 */
export function mutedBy(source, by) {
  const who = by || 'Somebody who runs this room';
  if (source === 'microphone') return `${who} muted you. You can unmute yourself.`;
  return source === 'camera' ? `${who} turned your camera off. You can turn it on again.` : `${who} stopped your screen. You can share it again.`;
}

/**
 * @param {'microphone' | 'camera'} source
 * @param {string} by
 */
export function unmuteAsked(source, by) {
  const who = by || 'Somebody who runs this room';
  return source === 'microphone' ? { text: `${who} asks you to unmute.`, action: 'Unmute' } : { text: `${who} asks you to turn your camera on.`, action: 'Turn it on' };
}

/**
 * For who runs the room.
 * @param {string[]} names of who has come to wait
 */
export const waitOutside = (names) => `${names.length === 1 ? `${names[0]} is` : `${names.length} people are`} waiting to come in.`;
