// What a journey leaves behind: of the connection before it, of sources the former node did not know, and of what watched it.

import { GapWatch } from '/holdfast/gap-watch.js';
import { Monitor } from '/holdfast/monitor.js';
import { Transport } from '/holdfast/transport.js';
import { done, flowing, joined } from './joined.js';
import { equal, eventually, ok, test } from './harness.js';

test('a call that is joined anew before media came is watched once', async ({ cleanup }) => {
  const stop = new AbortController();
  cleanup(() => stop.abort());
  let looks = 0;
  const gap = { note: () => looks++, missing: new Map() };
  const monitor = new Monitor(/** @type {any} */ ({ gap, transport: () => null, busy: () => false }));
  const over = [];
  for (const which of ['first', 'second']) monitor.run(stop.signal).then(() => over.push(which));
  await eventually(() => looks > 0, 'a look');
  equal(over, ['second'], 'what is not run');
});

test('a connection that was left stays silent when the journey from it is called off', async (t) => {
  const given = [];
  const { setTrack } = Transport.prototype;
  Transport.prototype.setTrack = function (source, track) {
    given.push({ id: this.id, sends: track !== null });
    return setTrack.call(this, source, track);
  };
  t.cleanup(() => (Transport.prototype.setTrack = setTrack));
  const { cluster, call, video } = await joined(t, { moveLive: false });
  const { pcId } = await call.stats();
  const migrated = done(call);
  cluster.node.kill();
  cluster.loseAnswers = 1;
  cluster.move('n2');
  await eventually(() => cluster.node.offers.length === 1, 'the offer came');
  const silenced = () => given.findLastIndex(({ id, sends }) => id === pcId && !sends);
  const first = silenced();
  cluster.move('n3');
  await migrated;
  ok(silenced() > first, 'silent again after it was given its tracks for the second journey');
  equal(given.slice(silenced()).filter(({ id }) => id === pcId), [{ id: pcId, sends: false }]);
  await flowing(call, video);
});

test('the sound of a screen is sent again once the room is on a node that takes it', async (t) => {
  const { cluster, call } = await joined(t, { moveLive: false }, {}, { screenAudio: true });
  const [sound] = cluster.stream.getAudioTracks();
  await call.replaceTrack('screen-audio', sound);
  const sent = async () => (await call.stats()).outbound.some(({ source, packetsSent }) => source === 'screen-audio' && packetsSent > 0);
  await eventually(sent, 'sent');
  const move = async (name, screenAudio) => {
    const migrated = done(call);
    cluster.node.kill();
    cluster.screenAudio = screenAudio;
    cluster.move(name);
    await migrated;
  };
  await move('older', false);
  ok(call.isMuted('screen-audio'), 'an older node does not take it');
  await move('newer', true);
  ok(!call.isMuted('screen-audio'), 'a newer one does');
  await eventually(sent, 'sent again', 10000);
});

test('nothing is looked at closely any more when a journey ends in a fault', async (t) => {
  const { begin } = GapWatch.prototype;
  const { stats } = Transport.prototype;
  t.cleanup(() => {
    GapWatch.prototype.begin = begin;
    Transport.prototype.stats = stats;
  });
  let [began, over] = [0, 0];
  GapWatch.prototype.begin = async function (frozen) {
    began++;
    await begin.call(this, frozen);
    over++;
  };
  const { cluster, call } = await joined(t);
  Transport.prototype.stats = () => Promise.reject(new Error('staged'));
  cluster.node.kill();
  cluster.move('n2');
  await eventually(() => call.errors.includes('media_unreachable'), 'told');
  equal(began, 1);
  await eventually(() => over === 1, 'the close look ends', 10000);
});

test('whoever leaves is told as gone once, though the slots say so later', async (t) => {
  const { cluster, call } = await joined(t);
  const changes = [];
  call.addEventListener('slot', ({ detail: { peer, source, live } }) => changes.push([peer, source, live]));
  const { epoch } = cluster;
  const stream = call.stream('ada', 'camera');
  cluster.say({ type: 'peer-left', peer: 'ada', epoch, seq: 2 });
  cluster.say({ type: 'slots', slots: cluster.slots().map(({ mid, kind }) => ({ mid, kind, peer: '', source: '' })), epoch });
  await eventually(() => call.roster.length === 1 && call.slots.every(({ peer }) => peer === ''), 'nobody is left');
  equal(changes.sort(), [['ada', 'camera', false], ['ada', 'microphone', false]]);
  equal(stream.getTracks(), []);
});
