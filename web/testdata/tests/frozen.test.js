// Calls in which the connection is well and something is not shown: what the call does about it, and what it tells of it.

import { canMoveLiveConnection } from '/holdfast/capability.js';
import { attach, Call } from '/holdfast/index.js';
import { FakeCluster, someone } from './fake-cluster.js';
import { equal, eventually, ok, once, test } from './harness.js';

const best = canMoveLiveConnection(navigator) ? 'restart' : 'new-connection';

/** A call that shows ada, and when each of ada's pictures was shown, by the element's own account. */
async function watching({ cleanup }, options = {}) {
  const other = someone();
  const cluster = new FakeCluster(other.stream);
  const stream = await navigator.mediaDevices.getUserMedia({ audio: true, video: { width: 320, height: 180, frameRate: 15 } });
  const call = new Call({ audioSlots: 1, videoSlots: 1, WebSocket: cluster.WebSocket, ...options });
  const [video, audio] = [document.createElement('video'), document.createElement('audio')];
  [video.muted, video.playsInline] = [true, true];
  document.body.append(video, audio);
  cleanup(() => {
    call.leave();
    for (const track of stream.getTracks()) track.stop();
    other.stop();
    video.remove();
    audio.remove();
  });
  await call.join({ url: location.origin, token: 't', name: 'me', stream });
  attach(video, call.stream('ada', 'camera'));
  attach(audio, call.stream('ada', 'microphone'));
  const shown = [];
  const each = (_, { presentationTime }) => {
    shown.push(presentationTime);
    video.requestVideoFrameCallback(each);
  };
  video.requestVideoFrameCallback(each);
  await eventually(() => shown.length > 25, 'the picture moves');
  return { cluster, call, shown };
}

/** How long the picture of that number stood, or the first after it that stood for a second. A busy machine may freeze it again later. */
const stood = (shown, since) => shown.slice(since).map((at, n) => at - shown[since + n - 1]).find((ms) => ms > 1000) ?? 0;

/** The library counts when it learns of a picture, the element when it is presented; the sound came back far earlier. */
const isGapOf = (told, seen) => ok(told > seen / 2 && told < 2 * seen, `told a gap of ${told} ms, the picture stood for ${seen} ms`);

const offersOf = (messages) => messages.filter(({ type }) => type === 'offer').map(({ fresh }) => fresh);

test('after a move sound comes and no picture: the node is asked, then offered anew, then connected anew, until the picture is back', async (t) => {
  const { cluster, call, shown } = await watching(t);
  const migrated = once(call, 'migration', ({ phase }) => phase === 'done');
  const [since, heard] = [shown.length, cluster.heard.length];
  cluster.node.kill();
  cluster.move('n2');
  const { node } = cluster;
  node.shows = () => node.offers.length > 2;
  const { gapMs, how, lost } = await migrated;
  await eventually(() => shown.length > since + 5, 'the picture is back');
  const said = cluster.heard.slice(heard).filter(({ type }) => type === 'offer' || type === 'refresh');
  equal(offersOf(said).slice(0, 3), [best === 'new-connection', false, true], 'the move, an offer of the same connection, a new connection');
  equal(said.slice(0, 2).map(({ type }) => type), ['offer', 'refresh'], 'asked before it is offered anew');
  const asked = said.filter(({ type }) => type === 'refresh').map(({ mids }) => mids);
  ok(asked.some((mids) => mids.join() === '4'), `asked about the picture alone, once there is sound: ${asked.join(' ')}`);
  equal([how, lost], ['new-connection', []]);
  const seen = stood(shown, since);
  isGapOf(gapMs, seen);
  equal((await call.stats()).migrations.length, 1, 'it was one move');
});

test('a move tells the gap of the picture that came back last', async (t) => {
  const { cluster, call, shown } = await watching(t);
  const migrated = once(call, 'migration', ({ phase }) => phase === 'done');
  const since = shown.length;
  cluster.node.kill();
  cluster.move('n2');
  const { node } = cluster;
  node.shows = () => false;
  await eventually(() => call.state === 'live', 'sound comes');
  setTimeout(() => node.show(), 1200); // later than the sound by far
  const { gapMs, lost, how } = await migrated;
  equal(node.offers.length, 1, 'no connection was renewed');
  await eventually(() => shown.length > since + 5, 'the picture is back');
  const seen = stood(shown, since);
  isGapOf(gapMs, seen);
  equal([how, lost], [best, []]);
});

test('somebody lacks the codec: a new connection sends VP8, once', async (t) => {
  const { cluster, call } = await watching(t, { videoCodec: 'VP9' });
  const { node } = cluster;
  const first = ({ sdp }) => /m=video \d+ \S+ (\d+)/.exec(sdp)[1];
  const named = ({ sdp }, type) => new RegExp(`a=rtpmap:${type} (\\w+)`).exec(sdp)[1];
  equal(named(node.offers[0], first(node.offers[0])), 'VP9');
  const ask = () => cluster.say({ type: 'reoffer', mids: ['1'], reason: 'codec', epoch: cluster.epoch });
  const said = once(call, 'error', ({ code }) => code === 'codec_lacked');
  ask();
  ok(/VP9.*VP8/.test((await said).message), 'it is said');
  await eventually(() => node.offers.length === 2 && call.state === 'live', 'a new connection');
  equal([named(node.offers[1], first(node.offers[1])), node.offers[1].fresh], ['VP8', true]);
  ask();
  cluster.say({ type: 'reoffer', mids: ['1'], reason: 'unplaced', epoch: cluster.epoch });
  await eventually(() => node.offers.length === 3 && call.state === 'live', 'an offer');
  equal(node.offers[2].fresh, false, 'of the same connection');
});

test('the node asks for an offer: it gets one of this connection, and a second time a new connection', async (t) => {
  const { cluster, call, shown } = await watching(t);
  const { node } = cluster;
  const ask = () => cluster.say({ type: 'reoffer', mids: ['1'], reason: 'unplaced', epoch: cluster.epoch });
  ask();
  await eventually(() => node.offers.length === 2 && call.state === 'live', 'an offer');
  ask();
  await eventually(() => node.offers.length === 3 && call.state === 'live', 'another one');
  equal(node.offers.map(({ fresh }) => fresh), [true, false, true]);
  ok(node.offers[1].senders.some(({ source, ssrc }) => source === 'camera' && ssrc > 0), 'the SSRCs go with it');
  const since = shown.length;
  await eventually(() => shown.length > since + 5, 'the picture moves');
  ok(!cluster.heard.some(({ type }) => type === 'migrated'), 'nothing is called a move');
});

test('what an application cannot read is not waited for', async (t) => {
  const { cluster, call } = await watching(t);
  call.setUnreadable('ada', 'camera', true);
  call.setUnreadable('ada', 'microphone', true);
  await cluster.node.pc.getTransceivers().find(({ mid }) => mid === '4').sender.replaceTrack(null);
  await new Promise((resolve) => setTimeout(resolve, 3000));
  equal(cluster.heard.filter(({ type }) => type === 'refresh').length, 0, 'no keyframe is asked for');
  // Nothing but the picture comes in Firefox here, and a connection on which nothing comes is not asked about.
  if (best !== 'restart') return;
  call.setUnreadable('ada', 'camera', false);
  await eventually(() => cluster.heard.some(({ type }) => type === 'refresh'), 'a keyframe is asked for');
});

test('a picture that comes and cannot be decoded is asked for, given up and told, and nothing else is renewed; it is told too when it is shown after all', async ({ cleanup }) => {
  const source = `let open = false; onmessage = () => (open = true); onrtctransform = ({ transformer: { readable, writable, options } }) =>
    readable.pipeThrough(new TransformStream({ transform: (frame, out) => (open || options !== 'video receive') && out.enqueue(frame) })).pipeTo(writable);`;
  const worker = new Worker(URL.createObjectURL(new Blob([source], { type: 'text/javascript' })));
  const other = someone();
  const cluster = new FakeCluster(other.stream);
  const createTransform = (side, kind) => new RTCRtpScriptTransform(worker, `${kind} ${side}`);
  const call = new Call({ audioSlots: 1, videoSlots: 1, WebSocket: cluster.WebSocket, createTransform });
  const audio = document.createElement('audio');
  document.body.append(audio);
  cleanup(() => {
    call.leave();
    other.stop();
    worker.terminate();
    audio.remove();
  });
  const [told, states] = [[], []];
  call.addEventListener('undecodable', ({ detail: { undecodable } }) => told.push(undecodable.map(({ peer, source: of }) => `${peer} ${of}`)));
  await call.join({ url: location.origin, token: 't' });
  attach(audio, call.stream('ada', 'microphone'));
  await eventually(() => call.state === 'live', 'the call goes');
  call.addEventListener('state', ({ detail: { state } }) => states.push(state));
  await eventually(() => told.length > 0, 'it is given up');
  const { pcId, offersSent } = await call.stats();
  const refreshed = cluster.heard.filter(({ type, mids }) => type === 'refresh' && mids.includes('4')).length;
  equal([told, states, offersSent, cluster.node.offers.length, pcId], [[['ada camera']], [], 1, 1, pcId], 'nothing is renewed');
  ok(refreshed >= 3 && refreshed <= 5, `asked ${refreshed} times`);
  equal(call.undecodable.map(({ peer, codec }) => [peer, typeof codec]), [['ada', 'string']]);
  worker.postMessage('open');
  await eventually(() => told.length > 1, 'it is shown');
  equal([told.at(-1), call.undecodable, states], [[], [], []]);
});
