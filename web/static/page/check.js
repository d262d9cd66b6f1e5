// The page that tries everything before a call.

import { CallError } from '../holdfast/index.js';
import { Mirror, tryRelays, tryService } from './check-network.js';
import { Rows } from './check-rows.js';
import { CHECKS, ofRate, ofRelays, verdictOf } from './check-verdict.js';
import { readChoices } from './choices.js';
import { wish } from './devices.js';
import { find, make } from './elements.js';
import { Level, loudness } from './level.js';
import { takeSecrets } from './parameters.js';
import { ofCall, ofDevice } from './sentences.js';
import { lasted, listed, locale, say, sayAll } from './words.js';

/** @typedef {import('./check-verdict.js').Check} Check */

/** How long the microphone is listened to: somebody has to read first that they should speak. */
const LISTENING_MS = 8000;
const HEARD_DECIBELS = -50;

sayAll();
document.title = `${say('check')} · Holdfast`;
const { token } = takeSecrets();
const rows = new Rows(find('#checks', HTMLElement));
const verdict = find('#verdict', HTMLElement);
const start = find('#start', HTMLButtonElement);
const copy = find('#copy', HTMLButtonElement);
const preview = Object.assign(document.createElement('video'), { autoplay: true, muted: true, playsInline: true, hidden: true });
const meter = make('div', 'meter');
meter.hidden = true;
meter.setAttribute('aria-hidden', 'true');
preview.setAttribute('aria-label', say('lobby.preview'));
rows.show('camera', preview);
rows.show('microphone', meter);
const level = new Level(meter);
/** @type {MediaStreamTrack[]} */
let tracks = [];
/** The sentence about the camera that is shown once its picture is gone. */
let camera = '';

addEventListener('hashchange', () => location.reload());
addEventListener('pagehide', release);
start.addEventListener('click', () => run());
copy.addEventListener('click', async () => {
  await navigator.clipboard.writeText(`${navigator.userAgent}\n${verdict.textContent}\n${rows.text}`).then(() => {
    copy.textContent = say('check.copied');
  }, () => {});
});

async function run() {
  release();
  rows.reset();
  copy.hidden = true;
  start.disabled = true;
  copy.textContent = say('check.copy');
  delete verdict.dataset.state;
  if (canCall()) {
    await tryDevice('camera');
    await Promise.all([tryDevice('microphone'), tryNetwork()]);
  }
  for (const check of CHECKS) if (rows.states[check] === 'waiting' || rows.states[check] === 'running') rows.set(check, 'skipped');
  if (rows.states.camera === 'good') rows.set('camera', 'good', camera);
  const outcome = verdictOf(rows.states) ?? 'bad';
  verdict.dataset.state = outcome;
  verdict.textContent = say(`check.verdict.${outcome}`);
  start.textContent = say('check.again');
  [start.disabled, copy.hidden] = [false, false];
  release();
}

/** Stops the devices, so that the camera's light goes out, and hides the picture and the meter. */
function release() {
  for (const track of tracks) track.stop();
  tracks = [];
  level.show(null);
  [preview.hidden, meter.hidden, preview.srcObject] = [true, true, null];
}

/** @param {Check} check */
function begin(check) {
  rows.set(check, 'running');
  verdict.textContent = say('check.running', { what: say(`check.${check}`) });
}

function canCall() {
  const able = typeof RTCPeerConnection !== 'undefined' && typeof WebSocket !== 'undefined';
  const good = able && isSecureContext;
  rows.set('browser', good ? 'good' : 'bad', say(good ? 'check.browser.good' : able ? 'check.browser.insecure' : 'error.no_webrtc'));
  return good;
}

/** @param {'camera' | 'microphone'} source */
async function tryDevice(source) {
  begin(source);
  try {
    const deviceId = wish(readChoices()[source]); // As in a call.
    const stream = await navigator.mediaDevices.getUserMedia(source === 'camera' ? { video: { deviceId, width: 960, height: 540 } } : { audio: { deviceId } });
    const [track] = stream.getTracks();
    tracks.push(track);
    if (source === 'camera') showCamera(track, stream);
    else await listen(track);
  } catch (error) {
    rows.set(source, 'bad', ofDevice(error, source));
  }
}

/**
 * @param {MediaStreamTrack} track
 * @param {MediaStream} stream
 */
function showCamera(track, stream) {
  [preview.srcObject, preview.hidden] = [stream, false];
  const { width = 0, height = 0 } = track.getSettings();
  camera = say('check.camera.good', { device: track.label, width, height });
  rows.set('camera', 'good', `${camera} ${say('check.camera.look')}`);
}

/** @param {MediaStreamTrack} track */
async function listen(track) {
  rows.set('microphone', 'running', say('check.microphone.speak'));
  meter.hidden = false;
  level.show(track);
  const context = new AudioContext();
  const analyser = new AnalyserNode(context, { fftSize: 512 });
  context.createMediaStreamSource(new MediaStream([track])).connect(analyser);
  const samples = new Float32Array(analyser.fftSize);
  const heard = await new Promise((resolve) => {
    const end = performance.now() + LISTENING_MS;
    const timer = setInterval(() => {
      const loud = loudness(analyser, samples) > HEARD_DECIBELS;
      if (!loud && performance.now() < end) return;
      clearInterval(timer);
      resolve(loud);
    }, 50);
  });
  context.close();
  rows.set('microphone', heard ? 'good' : 'fair', say(heard ? 'check.microphone.good' : 'check.microphone.silent', { device: track.label }));
}

async function tryNetwork() {
  begin('service');
  try {
    rows.set('service', 'good', say('check.service.good', { time: lasted(await tryService()) }));
  } catch (error) {
    rows.set('service', 'bad', say(error instanceof CallError && error.code === 'no_socket' ? 'check.service.socket' : 'check.service.bad'));
    return;
  }
  const mirror = new Mirror();
  try {
    begin('direct');
    const servers = await mirror.enter(token);
    const relays = tryRelay(servers);
    await tryPath(mirror).finally(() => relays);
  } catch (error) {
    const { code, message } = error instanceof CallError ? error : new CallError('failed');
    if (code === 'needs_link') rows.set('direct', 'skipped', say('check.link'));
    else if (code === 'not_allowed') rows.set('direct', 'skipped', say('check.not_allowed'));
    else rows.set('direct', 'bad', ofCall({ code, message }));
  } finally {
    mirror.leave();
  }
}

/** @param {RTCIceServer[]} servers */
async function tryRelay(servers) {
  rows.set('relay', 'running');
  const relays = await tryRelays(servers);
  const [works, fails] = [relays.filter((relay) => relay.works), relays.filter((relay) => !relay.works)].map((some) => listed(some.map(({ way }) => way)));
  const state = ofRelays(relays);
  const sentence = {
    good: () => say('check.relay.good', { ways: works }),
    fair: () => say('check.relay.fair', { ways: works, others: fails }),
    bad: () => say('check.relay.bad'),
  }[/** @type {'good' | 'fair' | 'bad'} */ (state)];
  rows.set('relay', state, sentence?.() ?? say('check.relay.none'));
}

/** @param {Mirror} mirror */
async function tryPath(mirror) {
  const { relayed, protocol, rttMs } = await mirror.path();
  const time = lasted(rttMs);
  if (relayed) rows.set('direct', 'fair', say('check.direct.relayed', { way: protocol.toUpperCase(), time }));
  else if (protocol === 'tcp') rows.set('direct', 'fair', say('check.direct.tcp', { time }));
  else rows.set('direct', 'good', say('check.direct.good', { time }));
  const checks = /** @type {const} */ (['up', 'down']);
  for (const check of checks) {
    if (mirror.allows[check]) begin(check);
    else rows.set(check, 'skipped', say('check.not_allowed'));
  }
  if (!mirror.allows.up) return;
  const rates = await mirror.rates();
  for (const check of checks) {
    if (!mirror.allows[check]) continue;
    const { bitsPerSecond, loss } = rates[check];
    const state = ofRate(bitsPerSecond, loss);
    rows.set(check, state, say(`check.rate.${state}`, { rate: rate(bitsPerSecond), loss: percent(loss) }));
  }
}

/** @param {number} bitsPerSecond */
const rate = (bitsPerSecond) => new Intl.NumberFormat(locale, { style: 'unit', unit: 'megabit-per-second', maximumFractionDigits: 1, minimumFractionDigits: 1 }).format(bitsPerSecond / 1e6);

/** @param {number} share */
const percent = (share) => new Intl.NumberFormat(locale, { style: 'percent', maximumFractionDigits: 0 }).format(share);
