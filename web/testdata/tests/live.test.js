// A move while both nodes live, against a cluster in the page.

import { attach } from '/holdfast/index.js';
import { FakeCluster } from './fake-cluster.js';
import { equal, eventually, ok, same, test } from './harness.js';
import { done, flowing, joined } from './joined.js';

/** The connections that the call used, without those of the nodes, and what is said of its state. */
async function watched(t, options) {
  const [Genuine, connections, states] = [RTCPeerConnection, [], []];
  globalThis.RTCPeerConnection = class extends Genuine {
    setLocalDescription(description) {
      if (this.getConfiguration().bundlePolicy === 'max-bundle' && !connections.includes(this)) connections.push(this);
      return super.setLocalDescription(description);
    }
  };
  t.cleanup(() => (globalThis.RTCPeerConnection = Genuine));
  const all = await joined(t, options);
  const sound = attached(t, all.call.stream('ada', 'microphone'));
  all.call.addEventListener('state', ({ detail }) => states.push(detail.state));
  const open = () => connections.map(({ signalingState }) => signalingState !== 'closed');
  return { ...all, connections, states, open, sound };
}

function attached({ cleanup }, stream) {
  const audio = document.createElement('audio');
  attach(audio, stream);
  cleanup(() => (audio.srcObject = null));
  return audio;
}

const audible = ({ connections }) => connections.map((pc) => pc.getReceivers().filter(({ track }) => track.kind === 'audio').every(({ track }) => track.enabled));

/** Everything that n1 got of the call's camera. */
async function sentTo(node) {
  let packets = 0;
  for (const entry of (await node.pc.getStats()).values()) if (entry.type === 'inbound-rtp') packets += entry.packetsReceived;
  return packets;
}

const reports = (cluster) => cluster.heard.filter(({ type }) => type === 'migrated');
const settle = (cluster) => cluster.say({ type: 'settled', epoch: cluster.epoch });
const live = { live: true, overlapMs: 60000 };

test('both connections carry everything until the others have arrived', async (t) => {
  const all = await watched(t);
  const { cluster, call, video, states, open } = all;
  const [stream, sound, n1] = [call.stream('ada', 'camera'), call.stream('ada', 'microphone'), cluster.node];
  const [before] = stream.getTracks();
  const migrated = done(call);
  cluster.move('n2', live);
  await eventually(() => all.connections.length === 2, 'a second connection');
  equal([audible(all), stream.getTracks()[0] === before], [[true, false], true], 'nothing changes before the new node has it');
  const { how, attempt, gapMs, node } = await migrated;
  equal({ how, attempt, node }, { how: 'live', attempt: 1, node: 'n2' });
  equal(reports(cluster), [{ type: 'migrated', epoch: cluster.epoch, attempt: 1, how: 'live', gapMs }]);
  equal([states, open(), audible(all)], [[], [true, true], [false, true]], 'nobody notices');
  ok(stream.getTracks().length === 1 && stream.getTracks()[0] !== before && before.readyState === 'live', 'another track');
  equal([sound.getTracks().length, video.ended], [1, false]);
  same(video.srcObject, stream);
  await flowing(call, video);
  const sent = await sentTo(n1);
  await eventually(async () => (await sentTo(n1)) > sent + 10, 'the old node still gets what is sent');
  settle(cluster);
  await eventually(() => !open()[0], 'the first one is closed');
  equal([open(), n1.offers.length, cluster.node.offers.map(({ fresh, slots }) => [fresh, slots.length])], [[false, true], 1, [[true, 2]]]);
  equal(call.events.map(({ phase, how }) => `${phase} ${how ?? ''}`), ['started ', 'attempt live', 'done live']);
  await flowing(call, video);
});

test('what is shown stays until the new node shows it, and then in any slot', async (t) => {
  const all = await watched(t, { videoSlots: 2 });
  const { cluster, call, video, open } = all;
  const stream = call.stream('ada', 'camera');
  const [before] = stream.getTracks();
  cluster.move('n2', { ...live, silent: true });
  cluster.node.shows = () => false;
  cluster.slots = () => FakeCluster.prototype.slots.call(cluster, '3', '5');
  const migrated = done(call);
  cluster.order(live);
  await eventually(() => cluster.node.pc?.connectionState === 'connected', 'the new node is reached');
  await new Promise((resolve) => setTimeout(resolve, 1500));
  const frames = video.getVideoPlaybackQuality?.().totalVideoFrames;
  same(stream.getTracks()[0], before, 'the track');
  equal([reports(cluster), call.slots.map(({ mid }) => mid), open()], [[], ['3', '4'], [true, true]], 'nothing is swapped');
  await cluster.node.show('5');
  const { how, lost } = await migrated;
  equal([how, lost, call.slots.map(({ mid }) => mid), stream.getTracks().length], ['live', [], ['3', '5'], 1]);
  ok(!(video.getVideoPlaybackQuality?.().totalVideoFrames < frames), 'it ran on');
  await eventually(async () => (await call.stats()).perSlot['5']?.framesDecoded > 5, 'the picture');
});

test('a picture that begins small is waited for, for a while', async (t) => {
  const { cluster, call, video } = await watched(t);
  const width = async () => (await call.stats()).perSlot['4'].frameWidth;
  await eventually(async () => (await width()) === 160, 'the picture');
  for (const [node, wait] of [['n2', true], ['n3', false]]) {
    cluster.move(node, { silent: true });
    const { answer } = cluster.node;
    cluster.node.answer = async function small(offer) {
      const sdp = await answer.call(this, offer);
      await this.scale(2);
      return sdp;
    };
    const migrated = done(call);
    cluster.order(live);
    await eventually(() => cluster.node.pc?.connectionState === 'connected', 'the new node is reached');
    await new Promise((resolve) => setTimeout(resolve, 1200));
    equal(reports(cluster).length, wait ? 0 : 1, 'moves told');
    if (wait) await cluster.node.scale(1);
    equal((await migrated).node, node);
    await eventually(async () => (await width()) === (wait ? 160 : 80), 'its width'); // an encoder takes its time
  }
  await flowing(call, video);
});

test('an overlap ends without a word, too', async (t) => {
  const { cluster, call, video, open } = await watched(t);
  const migrated = done(call);
  cluster.move('n2', { live: true, overlapMs: 4000 });
  equal((await migrated).how, 'live');
  await eventually(() => !open()[0], 'the first one is closed');
  equal(open(), [false, true]);
  await flowing(call, video);
});

for (const [what, fault] of [
  ['its offer is rejected', (cluster) => (cluster.rejectOffers = 1)],
  ['its answer never comes', (cluster) => (cluster.loseAnswers = 1)],
]) {
  test(`a live move falls back to a restart when ${what}`, async (t) => {
    const { cluster, call, video, open } = await watched(t, { moveLive: false });
    const migrated = done(call);
    fault(cluster);
    cluster.move('n2', { ...live, attemptMs: 3000 });
    const { how, node } = await migrated;
    equal([how, node], ['new-connection', 'n2']);
    equal([open().length, open().filter(Boolean).length], [3, 1]);
    await flowing(call, video);
    equal(reports(cluster).map((report) => report.how), ['new-connection']);
  });
}

test('the new node dies in the middle: the room goes elsewhere', async (t) => {
  const { cluster, call, video, open } = await watched(t, { moveLive: false });
  const migrated = done(call);
  cluster.loseAnswers = 1;
  cluster.move('n2', live);
  await eventually(() => cluster.node.offers.length === 1, 'the offer came');
  cluster.node.kill();
  cluster.move('n3');
  const { how, node } = await migrated;
  equal([how, node, open()], ['new-connection', 'n3', [false, false, true]]);
  await flowing(call, video);
});

test('moved on before the others have arrived: the first connection is not kept twice', async (t) => {
  const { cluster, call, video, open } = await watched(t);
  for (const [node, left] of [['n2', [true, true]], ['n3', [false, true, true]]]) {
    const migrated = done(call);
    cluster.move(node, live);
    equal([(await migrated).node, open()], [node, left]);
  }
  settle(cluster);
  equal(open(), [false, false, true]);
  await flowing(call, video);
});

test('who leaves in the middle leaves nothing behind', async (t) => {
  const { cluster, call, open } = await watched(t);
  cluster.loseAnswers = 1;
  cluster.move('n2', live);
  await eventually(() => open().length === 2 && cluster.node.offers.length === 1, 'a second connection');
  call.leave();
  await new Promise((resolve) => setTimeout(resolve, 500));
  equal(open(), [false, false], 'both are closed, and no other is made');
});

test('who leaves after it leaves nothing behind', async (t) => {
  const { cluster, call, open } = await watched(t);
  const migrated = done(call);
  cluster.move('n2', live);
  await migrated;
  equal(open(), [true, true]);
  call.leave();
  await eventually(() => !open().includes(true), 'both are closed');
});

test('a signaling node that dies in the middle costs nothing', async (t) => {
  const { cluster, call, video, open, states } = await watched(t);
  const migrated = done(call);
  cluster.loseAnswers = 1;
  cluster.move('n2', live);
  await eventually(() => cluster.node.offers.length === 1, 'the offer came');
  cluster.resumeReply = { mediaAlive: false };
  cluster.cut();
  equal((await migrated).how, 'live');
  equal([new Set(cluster.node.offers.map(({ id }) => id)).size, open(), states], [1, [true, true], ['reconnecting', 'live']]);
  await flowing(call, video);
});

test('who mutes in the middle sends nothing to either node', async (t) => {
  const { cluster, call, connections, stream } = await watched(t);
  const sends = () => connections.map((pc) => pc.getSenders().filter(({ track }) => stream.getTracks().includes(track)).length);
  const migrated = done(call);
  cluster.loseAnswers = 1;
  cluster.move('n2', live);
  await eventually(() => cluster.node.offers.length === 1, 'the offer came');
  equal(sends(), [2, 2]);
  await call.setMuted('camera', true);
  equal(sends(), [1, 1]);
  cluster.cut();
  await migrated;
  await call.setMuted('microphone', true);
  equal(sends(), [0, 0]);
  await call.setMuted('camera', false);
  equal(sends(), [1, 1]);
});

test('another node under the same epoch takes the media, live and after a death', async (t) => {
  const { cluster, call, video, open } = await watched(t);
  const { epoch } = cluster;
  settle(cluster); // Of an earlier move: it says nothing of the next.
  for (const [node, order, how, left] of [['n2', live, 'live', [true, true]], ['n3', {}, 'restart', [false, true]]]) {
    const former = cluster.node;
    const migrated = done(call);
    cluster.move(node, { sameEpoch: true, ...order });
    if (!order.live) former.kill();
    const journey = await migrated;
    equal([journey.node, journey.epoch, journey.how === how || !order.live, call.epoch], [node, epoch, true, epoch]);
    if (order.live) equal(open(), left);
    await flowing(call, video);
  }
  equal(reports(cluster).map((report) => report.epoch), [epoch, epoch]);
});

test('a client that resumes at another node under the same epoch moves its media', async (t) => {
  const { cluster, call, video } = await watched(t);
  const { epoch } = cluster;
  const migrated = done(call);
  cluster.move('n2', { sameEpoch: true, silent: true });
  cluster.resumeReply = { mediaAlive: false };
  cluster.cut();
  const { node, epoch: now } = await migrated;
  equal([node, now], ['n2', epoch]);
  await flowing(call, video);
});
