// The sound of a shared screen: its place in a connection, and what an older server is told.

import { withoutScreenAudio } from '/holdfast/screen-audio.js';
import { withStereo } from '/holdfast/sdp.js';
import { Session } from '/holdfast/session.js';
import { Transport } from '/holdfast/transport.js';
import { equal, ok, test } from './harness.js';

/** @param {boolean} screenAudio */
async function offerOf(screenAudio) {
  const transport = new Transport({ id: 1, iceServers: () => [], screenAudio, audioSlots: 2, videoSlots: 1, simulcast: false });
  const { sdp } = await transport.offer({ iceRestart: false });
  const sources = [...transport.sources];
  const has = transport.hasSender('screen-audio');
  transport.close();
  return { sources, has, sections: sdp.split(/^(?=m=)/m).slice(1) };
}

test('a connection has a place for the sound of a screen where the server takes it', async () => {
  const { sources, has, sections } = await offerOf(true);
  equal(sources, [['0', 'microphone'], ['1', 'camera'], ['2', 'screen'], ['3', 'screen-audio']]);
  equal([has, sections.length], [true, 7]);
  const older = await offerOf(false);
  equal([older.has, older.sections.length, older.sources.length], [false, 6, 3]);
});

test('all sound but the microphone may have two channels, and a screen is not sent twice', async () => {
  const { sections } = await offerOf(true);
  const sounds = sections.filter((section) => section.startsWith('m=audio'));
  equal(sounds.map((section) => section.includes('stereo=1')), [false, true, true, true]);
  equal(sounds.map((section) => / red\//.test(section)), [true, false, true, true]);
  const twice = withStereo(sections.join(''));
  equal(twice, sections.join(''), 'what says so already is left');
});

test('an older server reads nothing of it', () => {
  equal(withoutScreenAudio({ type: 'mute', source: 'screen-audio', muted: false }), null);
  equal(withoutScreenAudio({ type: 'mute', source: 'screen', muted: false }), { type: 'mute', source: 'screen', muted: false });
  const of = (/** @type {any} */ source) => ({ mid: '3', kind: /** @type {const} */ ('audio'), peer: 'ada', source });
  const told = /** @type {any} */ (withoutScreenAudio({ type: 'offer', id: 'o', sdp: 's', fresh: true, senders: [of('screen'), of('screen-audio')], slots: [of('screen-audio'), of('microphone')] }));
  equal([told.senders.length, told.slots.length, told.slots[0].source], [1, 1, 'microphone']);
});

test('a session knows what its server and the node of the room take, as they last said', async () => {
  /** @type {any[]} */
  const said = [];
  /** @type {any} */
  let socket;
  class Maker {
    constructor() {
      socket = this;
      queueMicrotask(() => socket.onopen?.());
    }

    /** @param {string} text */
    send(text) {
      said.push(JSON.parse(text));
    }

    close() {}
  }
  const session = new Session({ url: 'ws://test/ws', token: 't', WebSocket: /** @type {any} */ (Maker) }, () => ({ epoch: 0, seq: 0 }));
  session.start();
  const say = (/** @type {object} */ message) => socket.onmessage({ data: JSON.stringify(message) });
  const mute = () => session.send({ type: 'mute', source: 'screen-audio', muted: false });
  await new Promise((resolve) => setTimeout(resolve, 50));
  say({ type: 'joined', peer: 'p', resume: 'r', room: 'blue', node: 'n', epoch: 1, seq: 1, roster: [], permissions: {} });
  ok(mute() && !session.screenAudio, 'nothing is wrong with an older one');
  say({ type: 'restart', node: 'm', epoch: 2, screenAudio: true, reason: 'moved', attempts: 3, attemptMs: 4000 });
  ok(mute() && session.screenAudio);
  say({ type: 'restart', node: 'n', epoch: 3, reason: 'moved', attempts: 3, attemptMs: 4000 });
  ok(mute() && !session.screenAudio);
  session.leave(false);
  equal(said.map(({ type }) => type), ['join', 'mute', 'leave']);
});
