// What callers expect: the hint while muted, switches that are kept, the layouts, a screen that stays on.

import { Devices } from '/page/devices.js';
import { hintWhileMuted } from '/page/muted-hint.js';
import { offerSettings } from '/page/settings.js';
import { Spotlight } from '/page/spotlight.js';
import { TileMenu } from '/page/tile-menu.js';
import { Tile } from '/page/tile.js';
import { playTestSound } from '/page/test-sound.js';
import { keepAwake } from '/page/wake-lock.js';
import { say } from '/page/words.js';
import { equal, eventually, ok, test } from './harness.js';

/** A microphone that hears a tone, or silence. */
function microphone(cleanup) {
  const context = new AudioContext();
  const volume = new GainNode(context, { gain: 0 });
  const out = context.createMediaStreamDestination();
  const tone = new OscillatorNode(context, { frequency: 300 });
  tone.connect(volume).connect(out);
  tone.start();
  cleanup(() => context.close());
  return { track: out.stream.getAudioTracks()[0], volume: volume.gain };
}

/** @param {MediaStreamTrack} track */
const muted = (track) => Object.assign(new EventTarget(), { off: { microphone: true }, track: () => track });

function hide(hidden) {
  Object.defineProperty(document, 'hidden', { value: hidden, configurable: true });
  document.dispatchEvent(new Event('visibilitychange'));
}

test('who speaks while muted is told once, and what was heard is let go of', async ({ cleanup }) => {
  const { track, volume } = microphone(cleanup);
  track.enabled = false;
  const [devices, stop] = [muted(track), new AbortController()];
  const copies = [];
  const clone = track.clone.bind(track);
  track.clone = () => copies[copies.push(clone()) - 1];
  let told = 0;
  hintWhileMuted(devices, () => told++, stop.signal);
  cleanup(() => { stop.abort(); delete document.hidden; });
  volume.value = 0.5;
  await eventually(() => told === 1, 'the hint');
  ok(!track.enabled, 'nobody else hears it');
  hide(true);
  equal(copies.map(({ readyState }) => readyState), ['ended'], 'a hidden page does not listen');
  hide(false);
  equal(copies.length, 2, 'listens again');
  devices.off.microphone = false;
  devices.dispatchEvent(new Event('change'));
  equal(copies[1].readyState, 'ended', 'unmuted');
  equal(told, 1, 'once');
});

test('a new microphone is listened to instead of the old one', async ({ cleanup }) => {
  const [old, fresh] = [microphone(cleanup), microphone(cleanup)];
  const [devices, stop] = [muted(old.track), new AbortController()];
  let told = 0;
  hintWhileMuted(devices, () => told++, stop.signal);
  cleanup(() => stop.abort());
  fresh.volume.value = 0.5;
  devices.track = () => fresh.track;
  devices.dispatchEvent(new Event('change'));
  await eventually(() => told === 1, 'the hint');
});

/** Devices that open real tracks and note what was asked for. */
function opened(cleanup, settings = {}) {
  localStorage.clear();
  const asked = [];
  const real = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
  navigator.mediaDevices.getUserMedia = async (constraints) => {
    asked.push(constraints);
    const stream = await real({ audio: constraints.audio && true, video: constraints.video && true });
    for (const track of stream.getTracks()) {
      const own = track.getSettings.bind(track);
      track.getSettings = () => ({ ...own(), ...(track.kind === 'audio' ? constraints.audio : { facingMode: constraints.video.facingMode ?? 'user' }), deviceId: own().deviceId, ...settings });
      track.applyConstraints = async () => {};
    }
    return stream;
  };
  const devices = new Devices({ width: 320, height: 180, fps: 15 });
  cleanup(() => {
    delete navigator.mediaDevices.getUserMedia;
    for (const track of devices.stream.getTracks()) track.stop();
    localStorage.clear();
  });
  return { devices, asked };
}

test('noise suppression is switched, kept, and sent on a new track where the old one cannot', async ({ cleanup }) => {
  const { devices, asked } = opened(cleanup);
  await devices.open();
  const root = document.body.appendChild(document.createElement('div'));
  cleanup(() => root.remove());
  offerSettings(root, devices, () => {});
  const track = devices.track('microphone');
  const sent = [];
  devices.addEventListener('track', ({ detail }) => sent.push(detail.source));
  root.querySelector('[name=noise]').click();
  await eventually(() => sent.length === 1, 'another track');
  equal([asked.at(-1).audio.noiseSuppression, asked.at(-1).audio.echoCancellation], [false, true]);
  ok(devices.track('microphone') !== track && track.readyState === 'ended', 'the old one is given back');
  const again = document.createElement('div');
  offerSettings(again, devices, () => {});
  equal([...again.querySelectorAll('[role=switch]')].map(({ name, checked }) => `${name} ${checked}`), ['hideSelf false', 'blur false', 'noise false', 'echo true', 'gain true']);
  ok(root.querySelector('[name=blur]').parentElement.hidden, 'this camera blurs nothing');
});

/** Gives cameras a system that can blur; `obeys` is false where only a newly opened camera does. */
function blurring(cleanup, obeys) {
  const real = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
  const asked = [];
  navigator.mediaDevices.getUserMedia = async (constraints) => {
    asked.push(constraints.video?.backgroundBlur === true);
    const stream = await real(constraints);
    for (const track of stream.getVideoTracks()) {
      const own = track.getSettings.bind(track);
      track.blurred = asked.at(-1);
      track.getCapabilities = () => ({ backgroundBlur: [false, true] });
      track.getSettings = () => ({ ...own(), backgroundBlur: track.blurred });
      track.applyConstraints = async (wanted) => {
        ok(wanted.width, 'what was asked of the camera before still holds');
        if (obeys) track.blurred = wanted.backgroundBlur;
      };
    }
    return stream;
  };
  localStorage.clear();
  const devices = new Devices({ width: 320, height: 180, fps: 15 });
  const root = document.body.appendChild(document.createElement('div'));
  offerSettings(root, devices, () => {});
  cleanup(() => {
    delete navigator.mediaDevices.getUserMedia;
    for (const track of devices.stream.getTracks()) track.stop();
    root.remove();
    localStorage.clear();
  });
  return { devices, asked, box: root.querySelector('[name=blur]') };
}

test('where nothing can be blurred here the settings say so, and that the system does it where it does', async ({ cleanup }) => {
  for (const [backgroundBlur, words] of [[undefined, 'settings.blur.never'], [true, 'settings.blur.always']]) {
    const { devices } = opened(cleanup, { backgroundBlur });
    const root = document.body.appendChild(document.createElement('div'));
    cleanup(() => root.remove());
    offerSettings(root, devices, () => {});
    const hint = root.querySelector('.hint');
    ok(hint.hidden, 'without a camera nobody knows');
    await devices.open();
    equal([hint.hidden, hint.textContent, root.querySelector('[name=blur]').parentElement.hidden], [false, say(words), true]);
    delete navigator.mediaDevices.getUserMedia;
    for (const track of devices.stream.getTracks()) track.stop();
  }
});

test('the background is blurred where the system can, on the same track, also from outside', async ({ cleanup }) => {
  const { devices, asked, box } = blurring(cleanup, true);
  ok(box.parentElement.hidden, 'no camera is open yet');
  await devices.open();
  ok(!box.parentElement.hidden && !box.checked && box.parentElement.parentElement.querySelector('.hint').hidden, 'it is offered');
  const track = devices.track('camera');
  box.click();
  await eventually(() => track.blurred, 'the blur');
  equal([devices.track('camera') === track, asked], [true, [false]], 'no other camera was opened');
  track.blurred = false;
  track.dispatchEvent(new Event('configurationchange'));
  equal([box.checked, JSON.parse(localStorage.getItem('holdfast.choices')).blur], [false, false], 'the system switched it off');
});

test('a camera that blurs only when it is opened is opened again, and the next one is blurred at once', async ({ cleanup }) => {
  const { devices, asked, box } = blurring(cleanup, false);
  await devices.open();
  const track = devices.track('camera');
  box.click();
  await eventually(() => devices.track('camera')?.blurred, 'the blur');
  ok(track.readyState === 'ended', 'the old one is given back');
  await devices.toggle('camera');
  await devices.toggle('camera');
  equal(asked, [false, true, true]);
});

test('a phone shows the other side, which is no mirror, and comes back', async ({ cleanup }) => {
  const { devices, asked } = opened(cleanup);
  await devices.open();
  await devices.flip();
  equal([asked.at(-1).video.facingMode, devices.backwards, devices.on('camera')], ['environment', true, true]);
  await devices.flip();
  equal([asked.at(-1).video.facingMode, devices.backwards], ['user', false]);
});

test('the speaker layout follows who speaks, not every cough, and stays with who is here', () => {
  const light = new Spotlight();
  equal([light.of([]), light.of(['a', 'b'])], ['', 'a'], 'nobody spoke');
  ok(light.heard(['b'], 0) && !light.heard(['c'], 500) && !light.heard(['c', 'b'], 5000) && light.of(['a', 'b']) === 'b', 'b stays');
  ok(light.heard(['c'], 6000) && light.of(['a', 'b', 'c']) === 'c', 'c follows');
  equal(light.of(['a', 'b']), 'a', 'c has left');
});

test('the screen stays on until the end, and again after the page was hidden', async ({ cleanup }) => {
  const locks = [];
  Object.defineProperty(navigator, 'wakeLock', { configurable: true, value: { request: async () => locks[locks.push({ released: false, async release() { this.released = true; } }) - 1] } });
  const stop = new AbortController();
  cleanup(() => { delete navigator.wakeLock; delete document.hidden; stop.abort(); });
  keepAwake(stop.signal);
  await eventually(() => locks.length === 1, 'a lock');
  await null;
  hide(true);
  locks[0].released = true;
  hide(false);
  await eventually(() => locks.length === 2, 'another lock');
  await null;
  stop.abort();
  await eventually(() => locks[1].released, 'let go of');
});

test('the test sound ends, on a speaker that is gone too', async () => {
  await playTestSound('');
  await playTestSound('no such speaker');
});

test('a tile has a menu, that hides oneself and says so to the settings', async ({ cleanup }) => {
  localStorage.clear();
  const stage = document.body.appendChild(Object.assign(document.createElement('main'), { id: 'stage' }));
  const canvas = Object.assign(document.createElement('canvas'), { width: 160, height: 90 });
  canvas.getContext('2d').fillRect(0, 0, 160, 90);
  const stop = new AbortController();
  const menu = new TileMenu(stop.signal);
  let [pinned, viewed] = [0, 0];
  const tile = new Tile({
    key: 'ada', peer: 'ada', self: true, screen: false, picture: canvas.captureStream(10), sound: null, onPin: () => pinned++, onBlocked: () => {},
    onMenu: (button) => menu.toggle(button, tile, { name: 'Ada', pinned: false, self: true, onPin: () => pinned++, onView: () => viewed++ }),
  });
  stage.append(tile.root);
  cleanup(() => { stop.abort(); stage.remove(); localStorage.clear(); });
  await eventually(() => tile.video.videoWidth > 0, 'a picture');
  const root = document.body.appendChild(document.createElement('div'));
  cleanup(() => root.remove());
  const refresh = offerSettings(root, Object.assign(new EventTarget(), { may: () => false }), () => {});
  tile.root.querySelector('.options').click();
  const labels = () => [...stage.querySelectorAll('.menu [role=menuitem]')].map(({ textContent }) => textContent);
  equal([labels()[0], labels().at(-1), labels().includes('Full screen'), pinned], ['Pin', 'Hide from me', document.fullscreenEnabled, 0], 'offered, and not pinned by the click');
  equal(labels().includes('Picture in picture'), document.pictureInPictureEnabled);
  stage.querySelector('.menu [role=menuitem]:last-child').click();
  refresh();
  equal([viewed, root.querySelector('[name=hideSelf]').checked], [1, true]);
});
