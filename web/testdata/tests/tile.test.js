// What a tile shows and says, and what the line below says of moves.

import { Status } from '/page/status.js';
import { ofEncryption } from '/page/sentences.js';
import { Tile } from '/page/tile.js';
import { equal, eventually, ok, test } from './harness.js';

const as = { name: 'Ada', identity: 'ada', silent: false, dark: false, paused: false, pinned: false };

function tile(cleanup, { screen = false, width = 0 } = {}) {
  const canvas = Object.assign(document.createElement('canvas'), { width: 160, height: 90 });
  canvas.getContext('2d').fillRect(0, 0, 160, 90);
  const made = new Tile({ key: 'ada', peer: 'ada', self: false, screen, picture: width ? canvas.captureStream(10) : new MediaStream(), sound: null, onPin: () => {}, onBlocked: () => {} });
  document.body.append(made.root);
  cleanup(() => made.remove());
  return made;
}

const held = (made) => made.root.querySelector('.held').textContent;
const label = (made) => made.root.getAttribute('aria-label');

test('a picture in a window of its own says so in its tile', async ({ cleanup }) => {
  const made = tile(cleanup, { width: 160 });
  await eventually(() => made.video.videoWidth > 0, 'a picture');
  made.paint(as);
  Object.defineProperty(document, 'pictureInPictureElement', { value: made.video, configurable: true });
  cleanup(() => delete document.pictureInPictureElement);
  made.video.dispatchEvent(new Event('enterpictureinpicture'));
  equal([held(made), label(made), made.root.classList.contains('dark')], ['Shown in picture in picture', 'Ada, Shown in picture in picture', true]);
  delete document.pictureInPictureElement;
  made.video.dispatchEvent(new Event('leavepictureinpicture'));
  equal([held(made), label(made), made.root.classList.contains('dark')], ['', 'Ada', false]);
});

test('a picture that is held back says why, to eyes and to screen readers', async ({ cleanup }) => {
  const made = tile(cleanup, { width: 160 });
  await eventually(() => made.video.videoWidth > 0, 'a picture');
  made.paint({ ...as, paused: true, silent: true });
  equal(held(made), 'Video paused: your connection is slow');
  equal(label(made), 'Ada, muted, Video paused: your connection is slow');
  ok(made.root.classList.contains('paused') && !made.root.classList.contains('dark'), 'the last picture stays');
  made.paint(as);
  equal([held(made), label(made), made.root.classList.contains('paused')], ['', 'Ada', false]);
});

test('what cannot be decrypted is said in place of the picture', async ({ cleanup }) => {
  const made = tile(cleanup, { width: 160 });
  await eventually(() => made.video.videoWidth > 0, 'a picture');
  const problem = ofEncryption('wrong-key');
  made.paint({ ...as, paused: true, problem });
  equal([held(made), label(made)], [problem, `Ada, ${problem}`]);
  ok(made.root.classList.contains('paused') && made.root.classList.contains('dark'), 'the words on the face');
  made.paint(as);
  equal([held(made), made.root.classList.contains('dark')], ['', false]);
});

test('a picture that is held back before it ever came leaves the face', ({ cleanup }) => {
  const made = tile(cleanup);
  made.paint({ ...as, paused: true });
  ok(made.root.classList.contains('dark'), 'the face is shown');
  equal(label(made), 'Ada, Video paused: your connection is slow');
  made.paint(as);
  equal([made.root.classList.contains('dark'), label(made)], [true, 'Ada, loading'], 'until the first one comes');
});

test('a screen that is held back is not called a picture', ({ cleanup }) => {
  const made = tile(cleanup, { screen: true });
  made.paint({ ...as, paused: true });
  equal(held(made), 'Screen paused: your connection is slow');
});

test('the line below names a move a move and a mended connection a mended connection', ({ cleanup }) => {
  const line = document.createElement('footer');
  line.innerHTML = '<span id="status-state"></span><span id="status-place"></span><ol id="status-moves"></ol>';
  line.id = 'status';
  document.body.append(line);
  cleanup(() => line.remove());
  const call = Object.assign(new EventTarget(), { state: 'mending', node: 'sfu-2', epoch: 7 });
  const status = new Status(call);
  const said = document.querySelector('#status-state').textContent;
  ok(/Connection/.test(said) && !/server/.test(said), said);
  call.dispatchEvent(new CustomEvent('mended', { detail: { node: 'sfu-2', gapMs: 1454 } }));
  call.dispatchEvent(new CustomEvent('migration', { detail: { phase: 'started', node: 'sfu-3' } }));
  call.dispatchEvent(new CustomEvent('migration', { detail: { phase: 'done', node: 'sfu-3', how: 'restart', gapMs: 120 } }));
  equal([...document.querySelectorAll('#status-moves li')].map(({ className, textContent }) => [className, textContent]),
    [['move', '→ sfu-3 120\u00a0ms'], ['mend', 'reconnected 1.5\u00a0s']]);
  equal(status.moves[0].means, 'The room moved; same connection, restarted');
  call.dispatchEvent(new CustomEvent('continued', { detail: { node: 'sfu-1' } }));
  equal([status.moves[0].text, /stood by/.test(status.moves[0].means)], ['→ sfu-1', true]);
  call.state = 'moving';
  call.dispatchEvent(new CustomEvent('state'));
  ok(/moving/.test(document.querySelector('#status-state').textContent), 'a move is said');
});
