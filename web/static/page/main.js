// The page: lobby, stage, lobby.

import { CallError } from '../holdfast/errors.js';
import { keepChoices, readChoices } from './choices.js';
import { Devices } from './devices.js';
import { find } from './elements.js';
import { canEncrypt, Encryption, newSecret, readSecret } from './encryption.js';
import { invitationTo } from './invitation.js';
import { Lobby } from './lobby.js';
import { notice } from './notices.js';
import { readParameters, takeSecrets } from './parameters.js';
import { Reachable } from './reachable.js';
import { showRings } from './ring-card.js';
import { Ringing } from './ringing.js';
import { missedMessage, missedRing, ofCall, whileTrying } from './sentences.js';
import { site } from './site.js';
import { fetchToken, inDevelopment, invitationTemplate, readToken } from './tokens.js';
import { showWhoIsHere } from './whos-here.js';
import { say, sayAll } from './words.js';

sayAll();
const { token: linkToken, key: linkKey, keyRoom } = takeSecrets();
const parameters = readParameters(location.search);
const link = readToken(linkToken);
const linkRoom = (link.room || parameters.room).trim();
/** The key of each room that was encrypted here. A link to no room has the key of the first one. */
const keys = new Map(linkKey === '' ? [] : [[keyRoom || linkRoom, linkKey]]);
if (linkToken !== '') find('#to-check', HTMLAnchorElement).hash = new URLSearchParams({ token: linkToken }).toString();
const devices = new Devices(parameters, link);
const ringing = new Ringing();
const lobby = new Lobby(devices, {
  name: parameters.name || readChoices().name, room: parameters.room, link, encrypt: keys.has(linkRoom), mayEncrypt: linkKey !== '', onJoin: join, onCancel: cancel,
  onName: (name) => call || reachable.open(name),
});
const reachable = new Reachable(ringing, { token: linkToken, message: link.message }, (message) => missed(missedMessage(message)));
/** In dev, who opened the room and not an invitation to it runs it. */
let host = parameters.host || parameters.room === '' || history.state?.host === true;
/** @type {import('../holdfast/call.js').Call | null} */
let call = null;
/** @type {import('../holdfast/call.js').Call | null} the next call, whose connection is made */
let ready = null;
/** @type {object | null} the join that waits for callParts */
let waits = null;
/** @type {ReturnType<typeof loadParts> | null} */
let parts = null;
/** Whether the parts of a call could not be loaded at some time. */
let lacked = false;

addEventListener('pagehide', () => {
  ringing.stopAll();
  reachable.close();
  call?.leave({ back: true });
});
// The browser does not load a link anew that differs behind the # alone.
addEventListener('hashchange', () => location.reload());
ringing.addEventListener('missed', (event) => missed(missedRing(/** @type {CustomEvent} */ (event).detail.ring)));
ringing.addEventListener('incoming', () => {
  const here = ringing.incoming.find(({ room }) => room === call?.room);
  if (here) ringing.answer(here.id, true);
});
showRings(ringing, { inCall: () => Boolean(call?.room), wayTo });
start();

async function start() {
  lobby.show();
  showWhoIsHere(linkToken, link.room);
  const { name, room } = lobby.values;
  const joins = parameters.autojoin && name !== '' && room !== '';
  lobby.setBusy(joins);
  if (joins) callParts().catch(() => {}); // join says so
  await loaded();
  lobby.preview();
  // A key that no link carries reaches nobody.
  if (canEncrypt && linkKey === '') invitationTemplate().then((template) => lobby.offerEncryption(template !== ''));
  if (!joins) reachable.open(name);
  await devices.open();
  if (!joins) {
    makeReady();
    return;
  }
  // Elsewhere a link would put whoever opens it before a stranger's eyes.
  if (await inDevelopment()) join(name, room);
  else lobby.setBusy(false);
}

/** Makes the next call while the person is in the lobby, since a browser takes a while for its connection. Most calls are not encrypted. */
async function makeReady() {
  const loading = await callParts().catch(() => null);
  if (!loading || call || waits || ready) return;
  ready = newCall(loading.Call);
  ready.prepare();
}

/**
 * @param {typeof import('../holdfast/call.js').Call} Call
 * @param {import('../holdfast/call-options.js').CreateTransform} [createTransform]
 */
function newCall(Call, createTransform) {
  const { audioSlots, videoSlots, simulcast, moveLive, videoCodec, scalabilityMode, rejectAnswers } = parameters;
  return new Call({ audioSlots, videoSlots, simulcast, moveLive, videoCodec, scalabilityMode, createTransform, faults: { rejectAnswers } });
}

/**
 * Returns the call that is ready, or another one where it is not as this call shall be.
 * @param {typeof import('../holdfast/call.js').Call} Call
 * @param {import('../holdfast/call-options.js').CreateTransform} [createTransform]
 */
function takeReady(Call, createTransform) {
  const prepared = ready;
  ready = null;
  if (prepared && !createTransform) return prepared;
  prepared?.leave();
  return newCall(Call, createTransform);
}

/** What only a call needs, loaded once: it is most of the page, and one's own picture does not wait for it. */
function callParts() {
  parts ??= loadParts().catch((error) => {
    parts = null;
    throw error;
  });
  return parts;
}

async function loadParts() {
  const [{ Call }, { Stage }] = await Promise.all([import('../holdfast/call.js'), import('./stage.js')]);
  return { Call, stage: new Stage(devices, ringing) };
}

/** @param {string} module */
function isThere(module) {
  return fetch(new URL(module, import.meta.url), { cache: 'no-store' }).then(({ ok }) => ok, () => false);
}

/** @returns {Promise<void>} */
function loaded() {
  if (document.readyState === 'complete') return Promise.resolve();
  return new Promise((resolve) => {
    addEventListener('load', () => resolve(), { once: true });
  });
}

/**
 * @param {string} name
 * @param {string} room
 * @param {boolean} [encrypts]
 */
async function join(name, room, encrypts = lobby.encrypts) {
  if (call || waits) return;
  lobby.setBusy(true);
  keepChoices({ name });
  const key = encrypts ? keyOf(room) : '';
  const secret = readSecret(key);
  if (key !== '' && (!canEncrypt || !secret)) {
    end(canEncrypt ? ofCall({ code: 'bad_key', message: '' }) : ofCall({ code: 'cannot_encrypt', message: '' }));
    return;
  }
  const attempt = waits = {};
  const loading = await callParts().catch(() => null);
  if (waits !== attempt) return; // Cancelled.
  waits = null;
  if (!loading) {
    // Some browsers, as Chromium 150, keep in mind that a module could not be had, as long as the page is open.
    if (lacked && await isThere('./stage.js')) {
      remember(room);
      location.reload();
    }
    lacked = true;
    end(ofCall({ code: 'unreachable', message: '' }));
    return;
  }
  const { Call, stage } = loading;
  const encryption = secret && new Encryption(secret);
  const createTransform = encryption?.createTransform.bind(encryption);
  /** @type {import('../holdfast/call.js').Call | null} */
  let joining = null;
  try {
    joining = takeReady(Call, createTransform);
    call = joining;
    joining.prepare();
    // For tests, and for the console.
    Object.assign(globalThis, { call });
    stage.take(joining, { videoSlots: parameters.videoSlots, encryption, key });
    follow(joining, stage, encryption);
    await enter(joining, name, room);
    if (call !== joining) return;
    if (encrypts) keys.delete('');
    remember(room);
  } catch (error) {
    if (call !== joining) return;
    // Anything but a CallError is a fault of ours.
    if (!(error instanceof CallError)) console.error(error);
    if (joining && joining.state !== 'left') joining.leave();
    end(error instanceof CallError ? ofCall(error) : ofCall({ code: 'failed', message: '' }));
  } finally {
    if (!joining || joining.state === 'idle') encryption?.close(); // It never began, and is not `left`.
  }
}

/**
 * @param {import('../holdfast/call.js').Call} joining
 * @param {import('./stage.js').Stage} stage
 * @param {Encryption | null} encryption
 */
function follow(joining, stage, encryption) {
  let entered = '';
  joining.addEventListener('joined', () => {
    entered = joining.room;
    ringing.follow(joining.messages);
    reachable.close();
    lobby.wait(null);
    lobby.hide();
  });
  joining.addEventListener('waiting', (event) => {
    if (entered === '') lobby.wait(/** @type {CustomEvent} */ (event).detail, cancel); // Else the stage says it.
  });
  // The stage is hidden until then: whoever waits reads here why.
  joining.addEventListener('error', (event) => lobby.say(whileTrying(/** @type {CustomEvent} */ (event).detail)));
  joining.addEventListener('left', (event) => {
    encryption?.close();
    if (call !== joining) return; // Cancelled.
    const { code, message } = /** @type {CustomEvent} */ (event).detail;
    const wished = code === 'left' || (code === 'call_ended' && stage.ended(joining));
    end(wished ? '' : ofCall({ code, message }), entered);
  }, { once: true });
}

/**
 * Returns how a person who is rung enters a room: with this page's token if it leads there, otherwise by the application's invitation. Null when
 * there is no way, which the page says.
 * @param {string} room
 * @returns {Promise<(() => void) | null>}
 */
async function wayTo(room) {
  if (linkToken === '' || link.room === '' || link.room === room) {
    return () => {
      call?.leave();
      waits = null;
      host = false;
      lobby.room = room;
      join(lobby.values.name, room, false);
    };
  }
  const template = await invitationTemplate();
  if (template !== '') return () => location.assign(invitationTo(room, '', template));
  const problem = say('ring.no.way', { room });
  if (call?.room) notice(problem, { forMs: 0 });
  else lobby.say(problem);
  return null;
}

/**
 * Shows a missed ring or message, over the call or in the lobby.
 * @param {string} text empty for nothing
 */
function missed(text) {
  if (text === '') return;
  if (call?.room) notice(text, { forMs: 0, tone: 'good' });
  else lobby.missed(text);
}

/** Ends a join that takes long. */
function cancel() {
  const joining = call;
  end('');
  joining?.leave();
}

/**
 * @param {import('../holdfast/call.js').Call} joining
 * @param {string} name
 * @param {string} room
 */
async function enter(joining, name, room) {
  await devices.wake();
  if (call !== joining) return;
  for (const source of /** @type {const} */ (['microphone', 'camera'])) {
    if (devices.off[source]) joining.setMuted(source, true);
  }
  // First here, so that a refusal is the page's to tell.
  let token = await fetchToken(linkToken, room, name, host);
  if (call !== joining) return;
  let first = true;
  await joining.join({
    url: site,
    room,
    name,
    wait: true,
    stream: devices.stream,
    token: async () => {
      if (!first) token = await fetchToken(linkToken, room, name, host);
      first = false;
      return token;
    },
  });
}

/**
 * Returns a room's key and keeps it, so that joining again and a reload lead back into the same encrypted call.
 * @param {string} room
 */
function keyOf(room) {
  const key = keys.get(room) || keys.get('') || newSecret();
  keys.set(room, key);
  history.replaceState({ ...history.state, key, keyRoom: room }, '');
  return key;
}

/**
 * Puts the room into the address, so that a reload leads back into it.
 * @param {string} room
 */
function remember(room) {
  const address = new URL(location.href);
  if (address.searchParams.get('room') === room) return;
  address.searchParams.set('room', room);
  history.replaceState({ ...history.state, host, keyRoom: history.state?.keyRoom || linkRoom }, '', address);
}

/**
 * @param {string} problem why the call is over, when that was nobody's wish
 * @param {string} [room] where one was in it
 */
function end(problem, room = '') {
  [call, waits] = [null, null];
  lobby.setBusy(false);
  lobby.wait(null);
  lobby.show();
  lobby.say(room ? '' : problem);
  if (room) lobby.end(room, problem);
  reachable.open(lobby.values.name).then(() => ringing.stopAll());
  makeReady();
}
