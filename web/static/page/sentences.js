// Which sentence says what happened, and what to do.

import { CallError } from '../holdfast/errors.js';
import { lasted, locale, say } from './words.js';

/** What passes by itself. */
const passing = /** @type {const} */ (['no_token', 'no_capacity', 'no_nodes', 'node_unreachable', 'not_ready', 'too_many_sockets', 'media_unreachable']);

const lasting = /** @type {const} */ ([
  'unreachable', 'room_full', 'room_closed', 'turned_away', 'token_expired', 'bad_token', 'not_allowed', 'needs_link', 'superseded', 'kicked', 'call_ended', 'resume_expired',
  'store_unavailable', 'bad_room', 'bad_key', 'cannot_encrypt', 'no_webrtc', 'not_published', 'not_said', 'not_renamed', 'not_moderator', 'too_many_messages', 'internal', 'failed',
]);

/**
 * The error's own message for a code without a sentence here.
 * @param {{code: string, message: string}} error
 */
export function ofCall({ code, message }) {
  const soon = passing.find((one) => one === code);
  if (soon) return say('again', { problem: say(`passing.${soon}`) });
  const known = lasting.find((one) => one === code);
  return known ? say(`error.${known}`) : message;
}

/**
 * While the page goes on trying by itself.
 * @param {{code: string, message: string}} error
 */
export function whileTrying(error) {
  const soon = passing.find((one) => one === error.code);
  return soon ? say('trying', { problem: say(`passing.${soon}`) }) : ofCall(error);
}

/** @param {'microphone' | 'camera' | 'screen'} source that the token forbids */
export const forbidden = (source) => say(`forbidden.${source}`);

/**
 * Says before joining what the token forbids; empty when it allows both sources.
 * @param {{microphone: boolean, camera: boolean}} allowed
 */
export function ofGrant({ microphone, camera }) {
  if (microphone && camera) return '';
  return say(microphone ? 'grant.microphone' : camera ? 'grant.camera' : 'grant.listen');
}

/** @param {string[] | null} names of who is in the room; null when nobody knows */
export function whoIsHere(names) {
  if (!names) return '';
  const [name, other, ...more] = names;
  if (!name) return say('here.nobody');
  if (!other) return say('here.one', { name });
  return more.length === 0 ? say('here.two', { name, other }) : say('here.more', { name, other, count: more.length });
}

/**
 * Returns a title and a sentence about a place in line.
 * @param {{position: number, reason: string, estimateMs?: number}} place in a line
 * @returns {[string, string]}
 */
export function ofPlace({ position, reason, estimateMs }) {
  if (reason === 'closed') return [say('line.outside'), say('line.closed')];
  const title = position === 1 ? say('line.next') : say('line.place', { position });
  if (reason === 'no_capacity') return [title, say('line.busy')];
  const count = Math.round((estimateMs ?? 0) / 60_000);
  return [title, !estimateMs ? say('line.full') : count < 1 ? say('line.soon') : say('line.minutes', { count })];
}

/** @typedef {'camera' | 'microphone' | 'both'} Device */

/**
 * By the name of getUserMedia's error.
 * @type {Record<string, 'blocked' | 'missing' | 'busy' | 'other' | 'insecure'>}
 */
const ofDevices = { NotAllowedError: 'blocked', NotFoundError: 'missing', NotReadableError: 'busy', OverconstrainedError: 'other', InsecureError: 'insecure' };

/**
 * @param {unknown} error of getUserMedia
 * @param {Device} device
 */
export function ofDevice(error, device) {
  const name = error instanceof Error ? error.name : '';
  return say(`${device}.${ofDevices[name] ?? /** @type {const} */ ('failed')}`);
}

/** @param {unknown} error of getDisplayMedia, or of the call, which does not send it */
export function ofScreen(error) {
  if (error instanceof CallError) return ofCall(error);
  const name = error instanceof Error ? error.name : '';
  return say(name === 'NotFoundError' ? 'screen.none' : name === 'NotReadableError' ? 'screen.blocked' : 'screen.failed');
}

/**
 * Says why a peer's media is not shown in an encrypted call; empty when it is shown.
 * @param {import('./encryption.js').State} state
 */
export function ofEncryption(state) {
  return state === 'wrong-key' ? say('tile.wrong.key') : state === 'clear' ? say('tile.clear') : '';
}

/**
 * Says how many streams did not come back after a move; empty when all did.
 * @param {unknown[]} [lost]
 */
export const without = (lost = []) => (lost.length === 0 ? '' : say('moves.missing', { count: lost.length }));

/**
 * Tells that the room moved. Only in dev the name of a node means something.
 * @param {{node: string, gapMs: number, lost?: unknown[]}} move
 * @param {boolean} dev
 */
export function moved({ node, gapMs, lost }, dev) {
  const gap = lasted(gapMs);
  return [dev ? say('moves.told', { node, gap }) : say('moves.told.plain', { gap }), without(lost)].filter(Boolean).join(' ');
}

/**
 * @param {import('../holdfast/protocol.js').Source} source
 * @param {string} by who runs the room; may be empty
 */
export const mutedBy = (source, by) => say(`muted.${source}`, { who: by || say('host.a') });

/**
 * @param {'microphone' | 'camera'} source
 * @param {string} by
 */
export const unmuteAsked = (source, by) => ({ text: say(`asked.${source}`, { who: by || say('host.a') }), action: say(`${source}.turn.on`) });

/** @param {import('./ringing.js').Incoming} ring */
export const missedRing = ({ name, room, at }) => say('missed.ring', { name, room, time: new Date(at).toLocaleTimeString(locale, { hour: '2-digit', minute: '2-digit' }) });

/**
 * Says what a message was that came outside of a call; empty for a message that is no text.
 * @param {{from: string, name: string, kind: string, body: unknown}} message
 */
export const missedMessage = ({ from, name, kind, body }) => (['text', 'notice'].includes(kind) && typeof body === 'string' ? say('chat.heard', { name: name || from, text: body }) : '');

/**
 * Tells a moderator who has come to wait.
 * @param {string[]} names of who has come to wait
 */
export const waitOutside = (names) => say('people.outside', { names: names[0], count: names.length });
