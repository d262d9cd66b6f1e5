// Data channels: the messages, the channels of a connection, and what is refused.

import { Call } from '/holdfast/index.js';
import { Data } from '/holdfast/data.js';
import { decodeData, encodeData } from '/holdfast/data-packet.js';
import { Transport } from '/holdfast/transport.js';
import { equal, eventually, ok, test } from './harness.js';
import { joined } from './joined.js';

const text = (/** @type {Uint8Array} */ bytes) => new TextDecoder().decode(bytes);
const bytes = (/** @type {string} */ words) => new TextEncoder().encode(words);

/**
 * @param {number} number
 * @param {Uint8Array} value
 */
const field = (number, value) => [number << 3 | 2, value.length, ...value];

test('a message is a DataPacket, and its sender is what the node says', () => {
  equal([...encodeData({ payload: bytes('hi'), topic: '', to: [], reliable: true })], [0x12, 4, 0x12, 2, 104, 105]);
  equal([...encodeData({ payload: bytes('hi'), topic: 't', to: ['p'], reliable: false })], [8, 1, 0x12, 13, 0x12, 2, 104, 105, 0x1a, 4, 80, 65, 95, 112, 0x22, 1, 116]);
  const long = encodeData({ payload: new Uint8Array(300), topic: '', to: [], reliable: true });
  equal([long.length, decodeData(long)?.payload.length], [306, 300]);
  const stamped = new Uint8Array(field(2, new Uint8Array([...field(2, bytes('hi')), ...field(4, bytes('t')), ...field(5, bytes('ada')), ...field(1, bytes('PA_p-1'))])));
  const { payload, ...from } = decodeData(stamped) ?? {};
  equal([text(/** @type {any} */ (payload)), from], ['hi', { topic: 't', identity: 'ada', peer: 'p-1' }]);
});

test('what is no message of a user is left out', () => {
  for (const bad of [[], [0x12, 200, 1], [0x12, 2, 0x12, 9], [0x6a, 1, 1], [0x80], [0x13], [0x11, 1], [0x12, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255]]) {
    equal(decodeData(new Uint8Array(bad)), null, String(bad));
  }
  ok(decodeData(new Uint8Array([0x11, 1, 2, 3, 4, 5, 6, 7, 8, 0x1d, 1, 2, 3, 4, 8, 200, 1, 0x12, 0])), 'fields that are not known are left out');
});

test('a connection has data channels behind its media, if the application wants them', async () => {
  const options = { id: 1, iceServers: () => [], screenAudio: true, audioSlots: 1, videoSlots: 1, simulcast: false };
  const offered = async (/** @type {any} */ data) => {
    const transport = new Transport({ ...options, data });
    const { sdp } = await transport.offerAhead();
    const kinds = sdp.split(/^(?=m=)/m).slice(1).map((section) => section.slice(2, 5));
    const sources = [...transport.sources.values()];
    transport.close();
    return [kinds.join(), sources.join()];
  };
  const sources = 'microphone,camera,screen,screen-audio';
  equal(await offered(null), ['aud,vid,vid,aud,aud,vid', sources]);
  equal(await offered(new Data(true, { heard: () => {}, changed: () => {}, may: () => true })), ['aud,vid,vid,aud,aud,vid,app', sources]);
});

test('two ends hear each other, and what was sent early comes first', async ({ cleanup }) => {
  /** @type {any[]} */
  const heard = [];
  /** @type {boolean[]} */
  const opened = [];
  const near = new Data(true, { heard: () => {}, changed: (open) => opened.push(open), may: () => true });
  const far = new Data(true, { heard: (message) => heard.push(message), changed: () => {}, may: () => true });
  const [one, two] = [new RTCPeerConnection(), new RTCPeerConnection()];
  cleanup(() => [one, two].forEach((pc) => pc.close()));
  near.adopt(one);
  far.adopt(two);
  equal([near.send('early'), near.send('lost', { reliable: false }), near.open], [true, false, false]);
  ok(!near.send(new Uint8Array(15 << 10)) || near.send(new Uint8Array(15 << 10)), 'some of it waits');
  for (let i = 0; near.send(new Uint8Array(15 << 10)); i++) ok(i < 10, 'what waits is bounded');
  one.onicecandidate = ({ candidate }) => two.addIceCandidate(candidate ?? undefined);
  two.onicecandidate = ({ candidate }) => one.addIceCandidate(candidate ?? undefined);
  await one.setLocalDescription();
  await two.setRemoteDescription(/** @type {any} */ (one.localDescription));
  await two.setLocalDescription();
  await one.setRemoteDescription(/** @type {any} */ (two.localDescription));
  await eventually(() => near.open, 'the channels open');
  ok(near.send('perhaps', { reliable: false, topic: 'cursor' }), 'a lossy message is sent');
  await eventually(() => heard.some(({ topic, reliable }) => topic === 'cursor' && !reliable), 'the lossy message comes');
  await eventually(() => heard.some(({ payload }) => text(payload) === 'early'), 'the early message comes');
  equal(text(heard.filter(({ reliable }) => reliable)[0].payload), 'early');
  equal(opened, [true]);
});

test('a call says what is wrong with a message', async ({ cleanup }) => {
  const code = (/** @type {() => unknown} */ f) => {
    try {
      return f();
    } catch (error) {
      return /** @type {any} */ (error).code;
    }
  };
  const idle = new Call();
  equal([idle.data.open, idle.data.send('x')], [false, false]);
  equal(code(() => new Call({ data: /** @type {any} */ (1) })), 'bad_argument');
  const { send } = { send: (/** @type {any} */ payload, /** @type {any} */ options) => code(() => idle.data.send(payload, options)) };
  equal([send(new Uint8Array(15361)), send(7), send('x', { to: 'p' }), send('x', { to: [''] }), send('x', { topic: 7 }), send('x', { reliable: 1 })],
    ['data_too_long', 'bad_argument', 'bad_argument', 'bad_argument', 'bad_argument', 'bad_argument']);
  equal(send('x'.repeat(15000), { to: Array.from({ length: 64 }, (_, i) => `${i}`.padStart(60, 'p')) }), 'data_too_long');
  const { call } = await joined({ cleanup }, {}, { chat: false });
  equal(code(() => call.data.send('x')), 'not_sent');
});
