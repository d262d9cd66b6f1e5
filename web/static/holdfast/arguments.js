// What an application may pass to the library. Each function throws a CallError when an argument is wrong, before anything is done with it.

import { CallError } from './errors.js';
import { EMOJIS } from './emojis.js';

/** @typedef {import('./protocol.js').Source} Source */
/** @typedef {import('./protocol.js').Want} Want */
/** @typedef {import('./protocol.js').Act} Act */

const SOURCES = ['microphone', 'camera', 'screen', 'screen-audio'];
const CODECS = ['VP8', 'VP9', 'AV1', 'H264'];
const KINDS = ['text', 'ring', 'answer', 'app'];
const ACTS = ['mute', 'ask-unmute', 'lower-hand', 'remove', 'grant', 'give-up', 'end-call'];
/** The acts that one person must be named for. */
const OF_ONE = ['ask-unmute', 'remove', 'grant'];

// The server has the same limits.
const PEER_BYTES = 64;
const IDENTITY_BYTES = 256;
const NAME_BYTES = 256;
const BODY_BYTES = 8192;
const CHAT_CHARACTERS = 2000;
const SIDE_PIXELS = 32768;
const WANTS = 512;
const SLOTS = 64;
const CAP = 1_000_000;
const DATA_BYTES = 15 << 10;
const TOPIC_BYTES = 256;
const RECEIVERS = 64;

/** @param {string} message */
const bad = (message) => new CallError('bad_argument', { message });

/** @param {unknown} value */
const shown = (value) => (typeof value === 'string' ? JSON.stringify(value.slice(0, 40)) : value === null ? 'null' : typeof value === 'number' ? String(value) : typeof value);

/** @param {string} text */
const bytes = (text) => new TextEncoder().encode(text).length;

/**
 * @param {string} what
 * @param {readonly string[]} words
 * @param {unknown} value
 */
function oneOf(what, words, value) {
  if (!words.includes(/** @type {string} */ (value))) throw bad(`${shown(value)} is no ${what}. It is one of ${words.join(', ')}.`);
}

/**
 * @param {string} what
 * @param {unknown} value
 * @param {number} atMost bytes of UTF-8
 */
function text(what, value, atMost) {
  // Half of a surrogate pair would reach the server as another character, which no answer could be matched with.
  if (typeof value !== 'string' || value === '' || bytes(value) > atMost || /\p{Surrogate}/u.test(value)) {
    throw bad(`${shown(value)} is no ${what}. It is a text of 1 to ${atMost} bytes.`);
  }
}

/**
 * @param {string} what
 * @param {unknown} value
 */
export function checkBoolean(what, value) {
  if (typeof value !== 'boolean') throw bad(`${what} is true or false, not ${shown(value)}.`);
}

/** @param {unknown} source */
export const checkSource = (source) => oneOf('source', SOURCES, source);

/** @param {unknown} peer */
export const checkPeer = (peer) => text('peer', peer, PEER_BYTES);

/** @param {unknown} identity */
export const checkIdentity = (identity) => text('identity', identity, IDENTITY_BYTES);

/** @param {unknown} name */
export const checkName = (name) => text('name', name, NAME_BYTES);

/** @param {unknown} emoji */
export const checkEmoji = (emoji) => oneOf('reaction', EMOJIS, emoji);

/**
 * Returns the message with its defaults.
 * @param {Uint8Array | string} payload
 * @param {import('./data.js').DataOptions} options
 */
export function checkData(payload, { to = [], topic = '', reliable = true }) {
  if (typeof payload !== 'string' && !(payload instanceof Uint8Array)) throw bad(`What is sent is a text or a Uint8Array, not ${shown(payload)}.`);
  if (!Array.isArray(to) || to.length > RECEIVERS) throw bad(`to is a list of at most ${RECEIVERS} peers.`);
  to.forEach(checkPeer);
  if (topic !== '') text('topic', topic, TOPIC_BYTES);
  checkBoolean('reliable', reliable);
  const sent = typeof payload === 'string' ? new TextEncoder().encode(payload) : payload;
  if (sent.length > DATA_BYTES) throw new CallError('data_too_long');
  return { payload: sent, to, topic, reliable };
}

/** @param {unknown} line of the chat */
export function checkLine(line) {
  if (typeof line !== 'string') throw bad(`A chat line is a text, not ${shown(line)}.`);
  if ([...line.trim()].length > CHAT_CHARACTERS) throw new CallError('text_too_long');
}

/**
 * @param {unknown} source
 * @param {unknown} track
 */
export function checkTrack(source, track) {
  checkSource(source);
  if (track === null) return;
  const { kind } = /** @type {{kind?: unknown}} */ (track ?? {});
  const wanted = source === 'microphone' || source === 'screen-audio' ? 'audio' : 'video';
  if (kind !== wanted) throw bad(`A track of kind ${wanted} can be sent as ${source}, or null for none; this is ${kind === undefined ? 'no track' : `of kind ${kind}`}.`);
}

/** @param {unknown} value */
function pixels(value) {
  if (typeof value !== 'number' || !(value >= 0)) throw bad(`A side of a picture is a number of device pixels, not ${shown(value)}.`);
  return Math.min(Math.round(value), SIDE_PIXELS);
}

/**
 * Returns the first 512 wants, in whole pixels.
 * @param {unknown} wants
 * @returns {Want[]}
 */
export function checkedWants(wants) {
  if (!Array.isArray(wants)) throw bad('A view is a list of {peer, source, width, height}.');
  return wants.slice(0, WANTS).map((want) => {
    const { peer, source, width, height } = want ?? {};
    checkPeer(peer);
    checkSource(source);
    return { peer, source, width: pixels(width), height: pixels(height) };
  });
}

/**
 * @param {unknown} act
 * @param {unknown} peer
 * @param {unknown} source
 */
export function checkAct(act, peer, source) {
  oneOf('act', ACTS, act);
  if (peer !== undefined && peer !== '') checkPeer(peer);
  else if (OF_ONE.includes(/** @type {Act} */ (act))) throw bad(`The act ${act} is of one person: name the peer.`);
  checkSource(source);
}

/**
 * @param {unknown} cap
 * @param {unknown} closed
 */
export function checkDoor(cap, closed) {
  if (cap !== undefined && !(Number.isInteger(cap) && /** @type {number} */ (cap) >= -1 && /** @type {number} */ (cap) <= CAP)) {
    throw bad(`A cap is a whole number from 0 to ${CAP}, or -1 for none, not ${shown(cap)}.`);
  }
  if (closed !== undefined) checkBoolean('closed', closed);
}

/**
 * Checks a direct message.
 * @param {unknown} kind
 * @param {unknown} body
 */
export function checkLetter(kind, body) {
  oneOf('kind', KINDS, kind);
  if (kind === 'text' && typeof body !== 'string') throw bad('The body of a message is a text unless it has another kind: name one, such as {kind: \'app\'}.');
  let json;
  try {
    json = JSON.stringify(body);
  } catch {
    // Something refers to itself, or is a BigInt.
  }
  if (json === undefined || json === 'null') throw bad('The body of a message is a text, or what JSON can carry, but not null.');
  if (bytes(json) > BODY_BYTES) throw new CallError('message_too_long');
}

/** @param {unknown} users */
export function checkIdentities(users) {
  if (typeof users === 'string' || typeof /** @type {any} */ (users ?? {})[Symbol.iterator] !== 'function') throw bad('The identities are a list of texts.');
  const list = [.../** @type {Iterable<string>} */ (users)];
  list.forEach(checkIdentity);
  return list;
}

/**
 * Checks what a token was given as, or what a function gave as a token.
 * @param {unknown} token
 * @param {boolean} mayFetch
 */
export function checkToken(token, mayFetch) {
  if (mayFetch && typeof token === 'function') return;
  if (typeof token !== 'string' || token.trim() === '') throw new CallError('bad_token', { message: `The access token is ${token === '' ? 'empty' : `${shown(token)}, not a text`}. ${mayFetch ? 'Pass a token, or a function that fetches one.' : 'The function that fetches it must return a token.'}` });
}

/** @param {import('./call-options.js').JoinOptions} options */
export function checkJoin({ token, room, name, wait, stream, joinLimitMs }) {
  checkToken(token, true);
  for (const [what, value] of Object.entries({ room, name })) {
    if (value !== undefined && typeof value !== 'string') throw bad(`${what} is a text, not ${shown(value)}.`);
  }
  if (name) checkName(name);
  if (wait !== undefined) checkBoolean('wait', wait);
  if (stream !== undefined && typeof stream?.getTracks !== 'function') throw bad(`stream is a MediaStream, not ${shown(stream)}.`);
  checkLimit('joinLimitMs', joinLimitMs);
}

/**
 * @param {string} what
 * @param {unknown} ms
 */
export function checkLimit(what, ms) {
  if (ms !== undefined && !(typeof ms === 'number' && ms > 0 && ms < 2 ** 31)) throw bad(`${what} is a number of milliseconds, not ${shown(ms)}.`);
}

/** @param {import('./call-options.js').CallOptions} options */
export function checkCallOptions({ audioSlots = 0, videoSlots = 0, videoCodec = 'VP8', simulcast = true, moveLive = true, data = false, scalabilityMode = '', createTransform }) {
  for (const [what, slots] of Object.entries({ audioSlots, videoSlots })) {
    if (!Number.isInteger(slots) || slots < 0 || slots > SLOTS) throw bad(`${what} is a whole number from 0 to ${SLOTS}, not ${shown(slots)}.`);
  }
  oneOf('codec', CODECS, videoCodec);
  checkBoolean('simulcast', simulcast);
  checkBoolean('moveLive', moveLive);
  checkBoolean('data', data);
  if (typeof scalabilityMode !== 'string') throw bad(`scalabilityMode is a text, not ${shown(scalabilityMode)}.`);
  if (createTransform !== undefined && typeof createTransform !== 'function') throw bad(`createTransform is a function, not ${shown(createTransform)}.`);
}
