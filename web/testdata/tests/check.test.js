// What the figures of a check mean.

import { CHECKS, ofRate, ofRelays, verdictOf, wayOf } from '/page/check-verdict.js';
import { tryRelays, whileSeen } from '/page/check-network.js';
import { Rows } from '/page/check-rows.js';
import { equal, eventually, test } from './harness.js';

const all = (changes = {}) => ({ ...Object.fromEntries(CHECKS.map((check) => [check, 'good'])), ...changes });

test('the verdict waits for all, and is as bad as what a call needs', () => {
  for (const [changes, want] of [
    [{}, 'good'], [{ relay: 'bad' }, 'good'], [{ relay: 'skipped' }, 'good'], [{ direct: 'fair' }, 'fair'], [{ up: 'fair' }, 'fair'], [{ camera: 'bad' }, 'fair'],
    [{ microphone: 'fair' }, 'fair'], [{ camera: 'bad', microphone: 'bad' }, 'fair'], [{ direct: 'skipped', up: 'skipped', down: 'skipped' }, 'fair'],
    [{ browser: 'bad', camera: 'skipped' }, 'bad'], [{ service: 'bad', direct: 'skipped' }, 'bad'], [{ direct: 'bad', up: 'skipped' }, 'bad'], [{ down: 'bad' }, 'bad'],
    [{ down: 'running' }, null], [{ up: 'waiting', service: 'bad' }, null],
  ]) equal(verdictOf(all(changes)), want, JSON.stringify(changes));
});

test('a rate is judged by what arrives and by what is lost', () => {
  equal([[1_400_000, 0], [1_400_000, 0.2], [500_000, 0], [100_000, 0], [0, 0]].map(([bits, loss]) => ofRate(bits, loss)), ['good', 'fair', 'fair', 'bad', 'bad']);
});

test('ways to a relay', () => {
  equal(['turn:a:3478?transport=udp', 'turn:a', 'turn:a?transport=tcp', 'turns:a:443?transport=tcp'].map(wayOf), ['UDP', 'UDP', 'TCP', 'TLS']);
  const [works, fails] = [{ way: 'UDP', works: true }, { way: 'TCP', works: false }];
  equal([[], [works], [works, fails], [fails]].map(ofRelays), ['skipped', 'good', 'fair', 'bad']);
});

test('a relay that does not answer, and an address that is none, do not work', async () => {
  const servers = [{ urls: ['turn:127.0.0.1:9?transport=tcp', 'turns:'], username: 'a', credential: 'b' }, { urls: 'stun:127.0.0.1:9' }];
  equal(await tryRelays(servers), [{ way: 'TCP', works: false }, { way: 'TLS', works: false }]);
});

test('what is measured while the page is hidden does not count', async () => {
  const page = Object.assign(new EventTarget(), { hidden: true });
  const turn = (hidden) => {
    page.hidden = hidden;
    page.dispatchEvent(new Event('visibilitychange'));
  };
  const ends = [];
  const measured = whileSeen(() => new Promise((resolve) => ends.push(resolve)), page);
  await null;
  equal(ends.length, 0, 'not while it is hidden');
  turn(false);
  await eventually(() => ends.length === 1, 'once it is seen');
  turn(true);
  turn(false);
  ends[0]('too little');
  await eventually(() => ends.length === 2, 'again, as it was hidden for a moment');
  ends[1]('enough');
  equal(await measured, 'enough');
});

test('rows say how each check went', () => {
  const list = document.createElement('ol');
  const rows = new Rows(list);
  equal([...list.children].map((row) => row.dataset.state), CHECKS.map(() => 'waiting'));
  rows.set('camera', 'bad', 'Broken.');
  equal(rows.text.split('\n')[1], 'Camera: Does not work · Broken.');
  rows.reset();
  equal(rows.text.split('\n')[1], 'Camera: Not yet tested');
});

test('the devices that were chosen for calls are the ones that are tried', async ({ cleanup }) => {
  localStorage.setItem('holdfast.choices', JSON.stringify({ camera: 'second-camera' }));
  const frame = Object.assign(document.createElement('iframe'), { src: '/check/' });
  cleanup(() => {
    frame.remove();
    localStorage.clear();
  });
  document.body.append(frame);
  await new Promise((resolve) => frame.addEventListener('load', resolve, { once: true }));
  const { contentWindow: view, contentDocument: page } = frame;
  const asked = [];
  view.navigator.mediaDevices.getUserMedia = async (wanted) => {
    asked.push(wanted);
    throw new view.DOMException('staged', 'NotReadableError');
  };
  await eventually(() => page.querySelectorAll('#checks li').length > 0, 'the page');
  page.querySelector('#start').click();
  await eventually(() => asked.length === 2, 'both are tried');
  equal(asked.map(({ audio, video }) => [audio?.deviceId?.ideal, video?.deviceId?.ideal]), [[undefined, 'second-camera'], [undefined, undefined]]);
});
