// The page: a lobby, then the stage, then the lobby again.

import { Call, CallError } from '../holdfast/index.js';
import { DeviceProblem, openBoth, openCamera } from './devices.js';
import { find, showToggle } from './elements.js';
import { readParameters } from './parameters.js';
import { showStatus } from './status.js';
import { Tiles } from './tiles.js';
import { fetchToken } from './tokens.js';

const parameters = readParameters(location.search);
const lobby = find('#lobby', HTMLElement);
const stage = find('#stage', HTMLElement);
const preview = find('#preview', HTMLVideoElement);
const note = find('#preview-note', HTMLElement);
const problem = find('#problem', HTMLElement);
const enter = find('#enter', HTMLButtonElement);
const nameField = find('#name', HTMLInputElement);
const roomField = find('#room', HTMLInputElement);

/** One's own microphone and camera; it stays the same object while tracks come and go. */
const own = new MediaStream();
/** What the person switched off. */
const off = { microphone: false, camera: false };
/** @type {Call | null} */
let call = null;
/** @type {Tiles | null} */
let tiles = null;
let cameraBusy = false;

nameField.value = parameters.name || localStorage.getItem('holdfast.name') || '';
roomField.value = parameters.room;
find('#join', HTMLFormElement).addEventListener('submit', (event) => {
  event.preventDefault();
  join();
});
find('#leave', HTMLButtonElement).addEventListener('click', () => call?.leave());
find('#copy', HTMLButtonElement).addEventListener('click', copyLink);
for (const button of document.querySelectorAll('[data-toggle="microphone"]')) button.addEventListener('click', toggleMicrophone);
for (const button of document.querySelectorAll('[data-toggle="camera"]')) button.addEventListener('click', toggleCamera);
addEventListener('pagehide', () => call?.leave());

// A media element whose stream is still empty holds the page's load event back, so the
// first of them waits for it.
const devices = loaded().then(openDevices);
if (parameters.autojoin) devices.then(join);

/** @returns {Promise<void>} */
function loaded() {
  if (document.readyState === 'complete') return Promise.resolve();
  return new Promise((resolve) => {
    addEventListener('load', () => resolve(), { once: true });
  });
}

async function openDevices() {
  preview.srcObject = own;
  try {
    const stream = await openBoth(parameters);
    for (const track of stream.getTracks()) own.addTrack(track);
    note.hidden = own.getVideoTracks().length > 0;
    note.textContent = 'No camera was found. The others will hear you.';
  } catch (error) {
    note.textContent = error instanceof DeviceProblem ? error.message : String(error);
  }
  for (const [source, count] of /** @type {['microphone' | 'camera', number][]} */ ([
    ['microphone', own.getAudioTracks().length], ['camera', own.getVideoTracks().length],
  ])) {
    off[source] = count === 0;
    showToggle(source, count > 0);
    for (const button of document.querySelectorAll(`[data-toggle="${source}"]`)) {
      if (button instanceof HTMLButtonElement) button.disabled = count === 0;
    }
  }
}

async function join() {
  const [name, room] = [nameField.value.trim(), roomField.value.trim()];
  if (!name || !room) {
    say('A name and a room are needed to join.');
    return;
  }
  enter.disabled = true;
  enter.textContent = 'Joining…';
  problem.hidden = true;
  localStorage.setItem('holdfast.name', name);
  try {
    await devices;
    await joinAs(name, room);
  } catch (error) {
    // A person can do something about a CallError; anything else is a fault of ours.
    if (!(error instanceof CallError)) console.error(error);
    say(error instanceof CallError ? error.message : 'The call could not be joined. Reload the page and try again.');
    showLobby();
  } finally {
    enter.disabled = false;
    enter.textContent = 'Join the call';
  }
}

/**
 * @param {string} name
 * @param {string} room
 */
async function joinAs(name, room) {
  const { audioSlots, videoSlots, simulcast, moveLive, rejectAnswers } = parameters;
  const joining = new Call({ audioSlots, videoSlots, simulcast, moveLive, faults: { rejectAnswers } });
  call = joining;
  // For tests, and for whoever opens the console.
  Object.assign(globalThis, { call: joining });
  listen(joining);
  if (off.microphone) joining.setMuted('microphone', true);
  if (off.camera) joining.setMuted('camera', true);
  // Without a token the cluster's own is fetched; first here, so that its refusal is the page's to tell.
  let token = await fetchToken(parameters.token, room, name);
  let first = true;
  await joining.join({
    url: location.origin,
    room,
    name,
    stream: own,
    token: async () => {
      if (!first) token = await fetchToken(parameters.token, room, name);
      first = false;
      return token;
    },
  });
  const address = new URL(location.href);
  if (address.searchParams.get('room') === room) return;
  address.searchParams.set('room', room);
  history.replaceState(null, '', address); // A reload leads back into the room.
}

/** @param {Call} joining */
function listen(joining) {
  /** @type {(type: string, handler: (detail: any) => void) => void} */
  const on = (type, handler) => joining.addEventListener(type, (event) => handler(/** @type {CustomEvent} */ (event).detail));
  on('joined', ({ room }) => {
    find('#title', HTMLElement).textContent = room;
    document.title = `${room} · Holdfast`;
    lobby.hidden = true;
    stage.hidden = false;
    if (!tiles) tiles = new Tiles(find('#grid', HTMLElement), joining, own, askForSound);
    tiles.show(joining.roster);
  });
  on('roster', ({ roster }) => {
    tiles?.show(roster);
    find('#count', HTMLElement).textContent = roster.length === 1 ? 'only you' : `${roster.length} people`;
  });
  on('slot', (slot) => tiles?.slot(slot));
  on('speakers', ({ speakers }) => tiles?.speakers(speakers));
  on('error', ({ message }) => notice(message));
  on('left', ({ code, message }) => {
    if (code !== 'left') say(message);
    showLobby();
  });
  showStatus(joining);
}

function showLobby() {
  if (call && call.state !== 'left') call.leave();
  call = null;
  tiles?.show([]);
  tiles = null;
  stage.hidden = true;
  lobby.hidden = false;
  document.title = 'Holdfast';
}

async function toggleMicrophone() {
  off.microphone = !off.microphone;
  for (const track of own.getAudioTracks()) track.enabled = !off.microphone;
  showToggle('microphone', !off.microphone);
  await call?.setMuted('microphone', off.microphone);
  if (call) tiles?.show(call.roster);
}

/** Off means off: the camera is given back, and its light goes out. */
async function toggleCamera() {
  if (cameraBusy) return;
  cameraBusy = true;
  try {
    if (off.camera) {
      const track = await openCamera(parameters);
      own.addTrack(track);
      await call?.replaceTrack('camera', track);
    }
    off.camera = !off.camera;
    await call?.setMuted('camera', off.camera);
    for (const track of off.camera ? own.getVideoTracks() : []) {
      track.stop();
      own.removeTrack(track);
    }
  } catch (error) {
    if (!(error instanceof DeviceProblem)) throw error;
    if (call) notice(error.message);
    else say(error.message);
  } finally {
    cameraBusy = false;
  }
  note.hidden = !off.camera;
  note.textContent = 'Your camera is off.';
  showToggle('camera', !off.camera);
  if (call) tiles?.show(call.roster);
}

async function copyLink() {
  const link = new URL(location.pathname, location.href);
  link.searchParams.set('room', call?.room ?? '');
  try {
    await navigator.clipboard.writeText(link.href);
    notice('The link was copied. Send it to whoever should join.', 4000);
  } catch {
    notice(`Send this address to whoever should join: ${link.href}`, 12000);
  }
}

function askForSound() {
  const { button } = notice('The browser holds the sound back until you click.', 0, 'Play sound');
  button?.addEventListener('click', () => tiles?.play());
}

/** @param {string} text */
function say(text) {
  problem.textContent = text;
  problem.hidden = false;
}

/**
 * A word over the stage. The same word is not shown twice at a time.
 * @param {string} text
 * @param {number} [forMs] 0 until it is clicked away
 * @param {string} [action]
 * @returns {{button: HTMLButtonElement | null}}
 */
function notice(text, forMs = 8000, action) {
  const notices = find('#notices', HTMLElement);
  if ([...notices.children].some((child) => child.textContent?.startsWith(text))) return { button: null };
  const element = document.createElement('div');
  element.className = 'notice';
  const words = document.createElement('span');
  words.textContent = text;
  element.append(words);
  let button = null;
  if (action) {
    button = document.createElement('button');
    button.className = 'quiet';
    button.textContent = action;
    button.addEventListener('click', () => element.remove());
    element.append(button);
  }
  notices.append(element);
  while (notices.children.length > 3) notices.firstElementChild?.remove();
  if (forMs > 0) setTimeout(() => element.remove(), forMs);
  return { button };
}
