// Frames that are encrypted from end to end: what is sealed opens, and nothing else does.

import { canEncrypt, newSecret, readSecret } from '/page/encryption.js';
import { coverOf, Opener, parse, Sealer } from '/page/sealed-frame.js';
import { equal, ok, test } from './harness.js';

const secret = readSecret(newSecret());
/** A VP8 keyframe of 320 x 180, a delta frame and a frame of Opus. */
const keyframe = Uint8Array.of(0x10, 0x02, 0x00, 0x9d, 0x01, 0x2a, 0x40, 0x01, 0xb4, 0x00, ...new Array(500).fill(7));
const delta = Uint8Array.of(0x31, 0x03, 0x00, ...new Array(300).fill(8));
const sound = Uint8Array.of(0xfc, 1, 2, 3);
const frames = [[keyframe, 'video'], [delta, 'video'], [sound, 'audio']];

test('a sealed frame opens as it was', async () => {
  for (const [frame, kind] of frames) {
    const sealer = new Sealer(secret, kind);
    const opener = new Opener(secret, kind);
    for (let i = 0; i < 300; i++) equal([...await opener.open(await sealer.seal(frame))], [...frame], `${kind} ${i}`);
  }
});

test('nothing is clear but whether it is a keyframe, and its size', async () => {
  for (const [frame, kind] of frames) {
    const data = await new Sealer(secret, kind).seal(frame);
    const { cover } = parse(data, kind);
    equal([...data.subarray(0, cover)], [...coverOf(frame, kind)], 'the cover');
    const body = data.subarray(cover);
    ok(![...frame.keys()].some((i) => i + 4 < frame.length && includes(body, frame.subarray(i, i + 5))), `${kind}: a piece of the frame`);
  }
  equal([...coverOf(keyframe, 'video')], [0xf0, 0xff, 0xff, 0x9d, 0x01, 0x2a, 0x40, 0x01, 0xb4, 0x00], 'a keyframe');
  equal(coverOf(delta, 'video')[0] & 1, 1, 'a delta frame');
});

test('no two frames have a key and a counter in common', async () => {
  const seen = new Set();
  for (const sealer of [new Sealer(secret, 'video'), new Sealer(secret, 'video'), new Sealer(secret, 'audio')]) {
    for (let i = 0; i < 300; i++) {
      const data = await sealer.seal(delta);
      const header = parse(data, coverOf(delta, 'video')[0] === data[0] ? 'video' : 'audio');
      seen.add(`${header.keyId} ${header.counter}`);
    }
  }
  equal(seen.size, 900);
});

test('another key opens nothing', async () => {
  for (const [frame, kind] of frames) {
    const data = await new Sealer(readSecret(newSecret()), kind).seal(frame);
    equal(await new Opener(secret, kind).open(data), 'wrong-key', kind);
  }
});

test('a frame that is damaged anywhere is dropped', async () => {
  for (const [frame, kind] of frames) {
    const data = await new Sealer(secret, kind).seal(frame);
    const opener = new Opener(secret, kind);
    for (let i = 0; i < data.length; i++) {
      const damaged = Uint8Array.from(data);
      damaged[i] ^= 1 << (i % 8);
      equal(typeof await opener.open(damaged), 'string', `${kind}, byte ${i}`);
      equal(typeof await opener.open(data.subarray(0, i)), 'string', `${kind}, cut to ${i} bytes`);
    }
    equal(typeof await opener.open(Uint8Array.of(...data, 0)), 'string', `${kind}, a byte too long`);
  }
});

test('a frame that was never encrypted is not taken for one', async () => {
  for (const [frame, kind] of frames) equal(await new Opener(secret, kind).open(frame), 'clear', kind);
});

test('noise is never read past its end', () => {
  for (let n = 0; n < 20000; n++) {
    const data = crypto.getRandomValues(new Uint8Array(n % 64));
    const kind = n % 2 ? 'audio' : 'video';
    if (n % 3) data.set(coverOf(frames[n % 2 ? 2 : n % 4 ? 0 : 1][0], kind).subarray(0, data.length));
    const header = parse(data, kind);
    if (typeof header === 'string') continue;
    ok(header.body + 16 <= data.length && header.counter.length >= 1 && header.counter.length <= 8 && header.keyId.length === 16, JSON.stringify(header));
  }
});

test('secrets are read as they are written, and what is cut is none', () => {
  ok(canEncrypt, 'this browser');
  const text = newSecret();
  ok(/^[A-Za-z0-9_-]{43}$/.test(text), text);
  equal(readSecret(text).length, 32);
  equal([readSecret(''), readSecret('short'), readSecret(text.slice(0, 20)), readSecret(`${text.slice(0, 42)}+`), readSecret('%%')], [null, null, null, null, null]);
});

function includes(body, piece) {
  for (let i = 0; i + piece.length <= body.length; i++) if (piece.every((byte, j) => body[i + j] === byte)) return true;
  return false;
}
