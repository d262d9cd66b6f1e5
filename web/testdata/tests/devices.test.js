// The page's devices and its view: what is opened, what is said when it cannot be, what is asked for.

import { Devices } from '/page/devices.js';
import { View } from '/page/view.js';
import { equal, eventually, ok, test } from './harness.js';

const picture = { width: 320, height: 180, fps: 15 };

/** getUserMedia that refuses what the case says, and notes what it was asked for. */
function stub(t, refuse) {
  localStorage.clear();
  const real = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
  const asked = [];
  navigator.mediaDevices.getUserMedia = async ({ audio, video }) => {
    const what = [audio && 'microphone', video && 'camera'].filter(Boolean).join('+');
    asked.push(what);
    const name = refuse(what, asked.length);
    if (name) throw new DOMException('staged', name);
    return real({ audio: Boolean(audio), video: video ? { width: 320, height: 180 } : false });
  };
  const devices = new Devices(picture);
  t.cleanup(() => {
    delete navigator.mediaDevices.getUserMedia;
    for (const track of devices.stream.getTracks()) track.stop();
    localStorage.clear();
  });
  return { devices, asked };
}

test('both are opened with one question', async (t) => {
  const { devices, asked } = stub(t, () => '');
  await devices.open();
  equal(asked, ['microphone+camera'], 'asked');
  ok(devices.on('microphone') && devices.on('camera'), 'both on');
  equal(devices.problems, { microphone: '', camera: '' });
});

test('what is opened is told source by source: a call that has begun meanwhile sends it', async (t) => {
  const { devices } = stub(t, (what) => (what.includes('camera') ? 'NotFoundError' : ''));
  const told = {};
  devices.addEventListener('track', ({ detail: { source } }) => (told[source] = devices.track(source)?.readyState ?? 'none'));
  await devices.open();
  equal(told, { microphone: 'live', camera: 'none' });
});

test('without a camera one is heard, and told so', async (t) => {
  const { devices, asked } = stub(t, (what) => (what.includes('camera') ? 'NotFoundError' : ''));
  await devices.open();
  equal(asked, ['microphone+camera', 'microphone', 'camera'], 'asked');
  ok(devices.on('microphone') && !devices.on('camera'), 'only heard');
  ok(devices.problems.camera.startsWith('No camera found.'), devices.problems.camera);
});

test('a camera that another program has does not cost the microphone', async (t) => {
  const { devices } = stub(t, (what) => (what.includes('camera') ? 'NotReadableError' : ''));
  await devices.open();
  ok(devices.on('microphone') && devices.problems.camera.startsWith('Another program is using your camera.'), devices.problems.camera);
});

test('who refuses is not asked twice', async (t) => {
  const { devices, asked } = stub(t, () => 'NotAllowedError');
  await devices.open();
  equal(asked, ['microphone+camera'], 'asked');
  ok(devices.problems.camera.startsWith('Camera and microphone are blocked.'), devices.problems.camera);
  ok(!devices.on('microphone') && !devices.on('camera'), 'nothing is on');
});

test('a camera switched off is given back, and stays off next time', async (t) => {
  const { devices, asked } = stub(t, () => '');
  await devices.open();
  const track = devices.track('camera');
  await devices.toggle('camera');
  equal([track.readyState, devices.track('camera'), devices.on('camera')], ['ended', null, false]);
  const again = new Devices(picture);
  await again.open();
  equal(asked.at(-1), 'microphone', 'the camera is not opened');
  for (const one of again.stream.getTracks()) one.stop();
  await devices.toggle('camera');
  ok(devices.on('camera'), 'and on again');
});

test('a camera that cannot be switched on says why, and can be tried again', async (t) => {
  let broken = true;
  const { devices } = stub(t, (what) => (what === 'camera' && broken ? 'NotReadableError' : ''));
  await devices.open();
  await devices.toggle('camera');
  const said = await devices.toggle('camera').then(() => '', (error) => error.message);
  ok(said.includes('is using'), said);
  broken = false;
  await devices.toggle('camera');
  ok(devices.on('camera') && devices.problems.camera === '', 'on');
});

test('what is out of sight is asked for at no size', async (t) => {
  const call = Object.assign(new EventTarget(), { state: 'live', said: [], setView(wants) { this.said.push(wants); } });
  const view = new View(call);
  const roots = ['a', 'b'].map(() => document.body.appendChild(Object.assign(document.createElement('div'), { textContent: 'tile' })));
  t.cleanup(() => {
    delete document.hidden;
    call.dispatchEvent(new Event('left'));
    for (const root of roots) root.remove();
  });
  view.show([{ peer: 'a', source: 'camera', root: roots[0], width: 320, height: 180 }, { peer: 'b', source: 'camera', root: roots[1], width: 0, height: 0 }]);
  const scale = devicePixelRatio;
  equal(call.said[0].map(({ peer, width, height }) => [peer, width, height]), [['a', 320 * scale, 180 * scale], ['b', 0, 0]], 'at once');
  ok(view.sees('a') && !view.sees('b'), 'a is in sight');
  Object.defineProperty(document, 'hidden', { value: true, configurable: true });
  document.dispatchEvent(new Event('visibilitychange'));
  await eventually(() => call.said.at(-1)[0].width === 0, 'a hidden page asks for nothing');
  delete document.hidden;
  document.dispatchEvent(new Event('visibilitychange'));
  await eventually(() => call.said.at(-1)[0].width > 0, 'and comes back');
  roots[0].hidden = true;
  await eventually(() => call.said.at(-1)[0].width === 0, 'a tile that is covered or hidden, too');
});

test('a picture over other windows is asked for while the page is hidden', async (t) => {
  const call = Object.assign(new EventTarget(), { state: 'live', said: [], setView(wants) { this.said.push(wants); } });
  const view = new View(call);
  const root = document.body.appendChild(document.createElement('div'));
  const video = root.appendChild(document.createElement('video'));
  t.cleanup(() => {
    delete document.hidden;
    delete document.pictureInPictureElement;
    call.dispatchEvent(new Event('left'));
    root.remove();
  });
  view.show([{ peer: 'a', source: 'camera', root, width: 0, height: 0 }]);
  equal(call.said[0][0].width, 0, 'a page further');
  Object.defineProperty(document, 'pictureInPictureElement', { value: video, configurable: true });
  Object.defineProperty(document, 'hidden', { value: true, configurable: true });
  video.dispatchEvent(new Event('enterpictureinpicture', { bubbles: true }));
  await eventually(() => call.said.at(-1)[0].width >= 480, 'asked for');
  ok(view.sees('a'), 'seen');
});

test('what the token forbids is neither asked for nor switched on', async (t) => {
  const { asked } = stub(t, () => '');
  const heard = new Devices(picture, { microphone: true, camera: false });
  await heard.open();
  await heard.toggle('camera');
  equal([asked, heard.on('microphone'), heard.on('camera')], [['microphone'], true, false]);
  await new Devices(picture, { microphone: false, camera: false }).open();
  equal(asked, ['microphone']);
  for (const track of heard.stream.getTracks()) track.stop();
});

test('what was blocked is tried again, but not what was switched off', async (t) => {
  let refused = 'NotAllowedError';
  const { devices, asked } = stub(t, () => refused);
  await devices.open();
  refused = '';
  devices.off.camera = true;
  await devices.retry();
  equal([asked, devices.on('microphone'), devices.on('camera'), devices.problems.microphone], [['microphone+camera', 'microphone'], true, false, '']);
});

test('a camera that opens only after the call is closed at once', async (t) => {
  const { devices } = stub(t, () => '');
  const open = navigator.mediaDevices.getUserMedia;
  const opened = [];
  let release = () => {};
  const held = new Promise((resolve) => (release = resolve));
  navigator.mediaDevices.getUserMedia = async (wanted) => {
    await held;
    const stream = await open(wanted);
    opened.push(...stream.getTracks());
    return stream;
  };
  t.cleanup(() => opened.forEach((track) => track.stop()));
  const toggled = devices.toggle('camera');
  devices.rest();
  release();
  await toggled;
  equal([devices.track('camera'), opened.map(({ kind, readyState }) => [kind, readyState])], [null, [['video', 'ended']]]);
});

test('nothing is tried again between two calls', async (t) => {
  const { devices, asked } = stub(t, () => 'NotAllowedError');
  await devices.open();
  devices.rest();
  await devices.retry();
  equal(asked, ['microphone+camera']);
});
