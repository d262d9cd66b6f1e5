// The whole call against a cluster in the page: real connections, real media.

import { canMoveLiveConnection } from '/holdfast/capability.js';
import { Call } from '/holdfast/index.js';
import { SsrcTable } from '/holdfast/ssrc-table.js';
import { Transport } from '/holdfast/transport.js';
import { FakeCluster } from './fake-cluster.js';
import { done, flowing, joined } from './joined.js';
import { equal, eventually, ok, once, same, test } from './harness.js';

/** What this browser can do: these cases run in Chromium and in Firefox. */
const able = canMoveLiveConnection(navigator);
const best = able ? 'restart' : 'new-connection';

/** Notes the calls of a method of the senders of this stream: the other side has its own senders in this page. */
function watchSenders({ cleanup }, stream, method, calls) {
  const genuine = RTCRtpSender.prototype[method];
  RTCRtpSender.prototype[method] = function (...args) {
    if (stream.getTracks().includes(this.track)) calls.push(method);
    return genuine.apply(this, args);
  };
  cleanup(() => (RTCRtpSender.prototype[method] = genuine));
}

/** Holds back each offer of the browser until the node has one: it must not be sent only when it is set. */
function holdOffers({ cleanup }, cluster) {
  const genuine = RTCPeerConnection.prototype.setLocalDescription;
  RTCPeerConnection.prototype.setLocalDescription = async function (...args) {
    if (args[0]?.type === 'offer') await eventually(() => cluster.node.offers.length > 0, 'the node has the offer');
    return genuine.apply(this, args);
  };
  cleanup(() => (RTCPeerConnection.prototype.setLocalDescription = genuine));
}

if (able) test('a node dies: the live connection moves, with the same elements, streams and tracks', async (t) => {
  const { learn } = SsrcTable.prototype;
  let learned = new Set();
  SsrcTable.prototype.learn = function (sdp, outbound) {
    learned = new Set(outbound.filter(({ ssrc }) => ssrc > 0).map(({ mid }) => mid));
    learn.call(this, sdp, outbound);
  };
  t.cleanup(() => (SsrcTable.prototype.learn = learn));
  const { cluster, call, video, stream: own } = await joined(t);
  await eventually(() => learned.has('0') && learned.has('1'), 'the SSRCs are learned beforehand');
  const stream = call.stream('ada', 'camera');
  const [track] = stream.getTracks();
  const { pcId, offersSent } = await call.stats();
  const asked = [];
  for (const method of ['replaceTrack', 'setParameters', 'getStats']) watchSenders(t, own, method, asked);
  const migrated = done(call);
  holdOffers(t, cluster);
  cluster.node.kill();
  cluster.move('n2');
  const { how, attempt, gapMs, node } = await migrated;
  equal(asked, [], 'nothing is asked of the senders, for the offer would wait for it');
  equal({ how, attempt, node }, { how: 'restart', attempt: 1, node: 'n2' });
  ok(gapMs > 0, `gap ${gapMs} ms`);
  const stats = await call.stats();
  equal([stats.pcId, stats.offersSent, stats.node, stats.epoch], [pcId, offersSent + 1, 'n2', cluster.epoch]);
  same(call.stream('ada', 'camera'), stream);
  same(stream.getTracks()[0], track);
  await flowing(call, video);
  const [offer] = cluster.node.offers;
  equal(offer.fresh, false);
  ok(offer.senders.find(({ source, ssrc }) => source === 'camera' && ssrc > 0), 'the camera SSRC goes with the offer');
  ok(offer.senders.find(({ source, ssrc }) => source === 'microphone' && ssrc > 0), 'the microphone SSRC goes with the offer');
  const last = cluster.heard.filter(({ type }) => type === 'migrated');
  equal(last, [{ type: 'migrated', epoch: cluster.epoch, attempt: 1, how: 'restart', gapMs }]);
});

test('an answer that the browser rejects leads to a new connection in the same elements', async (t) => {
  const { cluster, call, video } = await joined(t, { moveLive: true, faults: { rejectAnswers: 1 } });
  const stream = call.stream('ada', 'camera');
  const { pcId } = await call.stats();
  const migrated = done(call);
  cluster.node.kill();
  cluster.move('n2');
  const { how, attempt } = await migrated;
  equal({ how, attempt }, { how: 'new-connection', attempt: 2 });
  ok((await call.stats()).pcId > pcId, 'a new connection');
  same(call.stream('ada', 'camera'), stream);
  same(video.srcObject, stream);
  await flowing(call, video);
  equal(cluster.node.offers.map(({ fresh }) => fresh), [false, true]);
});

test('the first offer follows the join at once, and is made once', async (t) => {
  const { cluster, call } = await joined(t, {}, {}, { screenAudio: true, slow: true });
  const { pcId, offersSent } = await call.stats();
  equal([cluster.heard.slice(0, 2).map(({ type }) => type), cluster.node.offers.length, pcId, offersSent], [['join', 'offer'], 1, 1, 1]);
  equal(call.errors, []);
});

test('a prepared call joins by the connection that it has made', async (t) => {
  const { cluster, call } = await joined(t, {}, {}, { screenAudio: true, slow: true, before: (call) => call.prepare() });
  const { pcId, offersSent } = await call.stats();
  equal([cluster.heard.slice(0, 2).map(({ type }) => type), cluster.node.offers.length, pcId, offersSent], [['join', 'offer'], 1, 1, 1]);
  call.prepare();
  equal([(await call.stats()).pcId, call.errors], [1, []]);
});

test('leaving a call that was never joined closes what it has prepared', ({ cleanup }) => {
  const genuine = RTCPeerConnection.prototype.close;
  let closed = 0;
  RTCPeerConnection.prototype.close = function () {
    closed++;
    genuine.call(this);
  };
  cleanup(() => (RTCPeerConnection.prototype.close = genuine));
  const call = new Call({ audioSlots: 1, videoSlots: 1 });
  call.prepare();
  call.leave();
  equal([closed, call.state], [1, 'idle']);
});

test('a stream has its track before the answer is set', async (t) => {
  const genuine = RTCPeerConnection.prototype.setRemoteDescription;
  let early = 0;
  const before = (call) => {
    RTCPeerConnection.prototype.setRemoteDescription = async function (...args) {
      if (args[0].type === 'answer') await eventually(() => (early = call.stream('ada', 'camera').getTracks().length), 'the track');
      return genuine.apply(this, args);
    };
  };
  t.cleanup(() => (RTCPeerConnection.prototype.setRemoteDescription = genuine));
  await joined(t, {}, {}, { before });
  equal(early, 1);
});

test('who waits in line says the offer again once inside', async (t) => {
  const { cluster, call } = await joined(t, {}, {}, { screenAudio: true, slow: true, waits: true });
  const offers = cluster.heard.filter(({ type }) => type === 'offer');
  equal([offers.map(({ id }) => id), cluster.node.offers.length, (await call.stats()).offersSent], [['o1', 'o1'], 1, 1]);
  equal(call.errors, []);
});

test('a browser that cannot restart takes a new connection at once', async (t) => {
  const { cluster, call, video } = await joined(t, { moveLive: false });
  const migrated = done(call);
  cluster.node.kill();
  cluster.move('n2');
  const { how, attempt } = await migrated;
  equal({ how, attempt }, { how: 'new-connection', attempt: 1 });
  await flowing(call, video);
  equal(cluster.node.offers.map(({ fresh }) => fresh), [true]);
});

test('each sender and receiver of each connection is given a transform, and no codec that looks into frames is used', async (t) => {
  const made = [];
  const createTransform = (side, kind, track) => (made.push(`${side} ${kind} ${track?.kind ?? ''}`), null);
  const { cluster, call, video } = await joined(t, { moveLive: false, createTransform }, {}, { screenAudio: true });
  const each = ['send audio ', 'send video ', 'send video ', 'send audio ', 'receive audio audio', 'receive video video'];
  equal(made, each);
  const migrated = done(call);
  cluster.node.kill();
  cluster.move('n2');
  await migrated;
  equal(made, [...each, ...each], 'on the new connection too');
  for (const { sdp } of cluster.node.offers) {
    equal([...new Set([...sdp.matchAll(/^a=rtpmap:\d+ ([^/]+)/gm)].map(([, name]) => name.toLowerCase()))].sort(), ['opus', 'rtx', 'vp8', 'vp9']);
  }
  await flowing(call, video);
});

test('an answer that never comes costs one bounded attempt', async (t) => {
  const { cluster, call, video } = await joined(t);
  const migrated = done(call);
  cluster.node.kill();
  cluster.loseAnswers = 1;
  cluster.move('n2', { attemptMs: 4000 });
  const { how, attempt } = await migrated;
  equal({ how, attempt }, { how: best, attempt: 2 });
  await flowing(call, video);
});

test('a restart during a restart supersedes it', async (t) => {
  const { cluster, call, video } = await joined(t);
  const migrated = done(call);
  cluster.node.kill();
  cluster.loseAnswers = 1;
  cluster.move('n2');
  await eventually(() => cluster.node.offers.length === 1, 'the offer came');
  cluster.move('n3');
  const { how, attempt, node } = await migrated;
  equal({ how, attempt, node }, { how: best, attempt: 1, node: 'n3' });
  await flowing(call, video);
  equal((await call.stats()).migrations.length, 1);
});

test('a message of a past epoch is ignored', async (t) => {
  const { cluster, call, video } = await joined(t);
  const { offersSent } = await call.stats();
  cluster.say({ type: 'restart', node: 'old', epoch: cluster.epoch - 1, reason: 'late', attempts: 3, attemptMs: 4000 });
  cluster.say({ type: 'slots', slots: [], epoch: cluster.epoch - 1 });
  await flowing(call, video);
  equal((await call.stats()).offersSent, offersSent);
});

test('another node goes on with the connection: that is told, and nothing is offered', async (t) => {
  const { cluster, call, video } = await joined(t);
  const { offersSent, pcId } = await call.stats();
  const told = [];
  call.addEventListener('continued', ({ detail }) => told.push(detail));
  const { epoch } = cluster;
  for (const place of [{ epoch }, { node: 'n1', epoch }, { node: 'n2', epoch: epoch + 1 }, { node: 'n3', epoch }, { node: 'n2', epoch: epoch + 2 }]) {
    cluster.say({ type: 'slots', slots: cluster.slots(), ...place });
  }
  await eventually(() => told.length > 0, 'it was told');
  await flowing(call, video);
  equal(told, [{ node: 'n2', epoch: epoch + 1 }], 'neither the same node nor a past epoch');
  const stats = await call.stats();
  equal([stats.offersSent, stats.pcId, stats.node, stats.epoch, stats.migrations], [offersSent, pcId, 'n2', epoch + 2, []]);
});

test('what this browser cannot show is listed, and told when it changes', async (t) => {
  const { cluster, call } = await joined(t);
  const lacks = [{ peer: 'ada', source: 'screen', codec: 'H264' }];
  const told = [];
  call.addEventListener('lacks', ({ detail }) => told.push(detail.lacks));
  const { epoch } = cluster;
  for (const more of [{ lacks }, { lacks }, {}, { lacks }]) cluster.say({ type: 'slots', slots: cluster.slots(), epoch, ...more });
  await eventually(() => told.length === 3, 'it was told');
  equal(told, [lacks, [], lacks]);
  equal(call.lacks, lacks);
  cluster.say({ type: 'resumed', node: 'n1', epoch, seq: 1, roster: cluster.roster, slots: cluster.slots(), resume: 'token-2', mediaAlive: true });
  equal(call.lacks, lacks);
});

test('a lost socket is resumed and the media never notices', async (t) => {
  const { cluster, call, video } = await joined(t);
  const states = [];
  call.addEventListener('state', ({ detail }) => states.push(detail.state));
  const { offersSent, pcId } = await call.stats();
  cluster.refuseSockets = 2;
  cluster.cut();
  await eventually(() => call.state === 'live', 'resumed');
  equal(states, ['reconnecting', 'live']);
  const { resume, attempt, epoch, seq } = cluster.heard.find(({ type }) => type === 'resume');
  equal({ resume, attempt, epoch, seq }, { resume: 'token-1', attempt: 2, epoch: cluster.epoch, seq: 1 });
  await flowing(call, video);
  const stats = await call.stats();
  equal([stats.offersSent, stats.pcId], [offersSent, pcId]);
  cluster.cut();
  await eventually(() => cluster.heard.some((m) => m.type === 'resume' && m.attempt === 3 && m.resume === 'token-2'), 'resumed again');
});

/** Makes the present connection say that ICE failed, and notes the servers of each ICE restart. */
async function breakable(t) {
  const { offer } = Transport.prototype;
  const { setConfiguration } = RTCPeerConnection.prototype;
  const [transports, servers] = [[], []];
  Transport.prototype.offer = function (...args) {
    transports.push(this);
    return offer.apply(this, args);
  };
  RTCPeerConnection.prototype.setConfiguration = function (configuration) {
    servers.push(...configuration.iceServers.map(({ urls }) => urls));
    return setConfiguration.call(this, configuration);
  };
  t.cleanup(() => {
    Transport.prototype.offer = offer;
    RTCPeerConnection.prototype.setConfiguration = setConfiguration;
  });
  const all = await joined(t);
  return { ...all, transports, servers, fail: () => transports.at(-1).dispatchEvent(new Event('trouble')) };
}

if (able) test('a repair over the relay of a dead signaling node begins again over that of the next one', async (t) => {
  const { cluster, call, video, servers, fail } = await breakable(t);
  cluster.loseAnswers = 1;
  cluster.resumeReply = { iceServers: [{ urls: 'stun:127.0.0.1:9' }] };
  const { length } = cluster.node.offers;
  fail();
  await eventually(() => cluster.node.offers.length > length, 'an offer that the relay cannot carry');
  cluster.cut();
  await eventually(() => servers.includes('stun:127.0.0.1:9'), 'another offer, with the other relay');
  await flowing(call, video);
});

if (able) test('a connection that has lost its path is mended over the relay of the next signaling node', async (t) => {
  const { cluster, call, video, servers, transports } = await breakable(t);
  const { stats } = Transport.prototype;
  t.cleanup(() => (Transport.prototype.stats = stats));
  Transport.prototype.stats = async function () {
    const seen = await stats.call(this);
    return transports.length > 1 ? seen : { ...seen, transport: { ...seen.transport, path: { protocol: '', relayed: false, address: '' } } };
  };
  cluster.resumeReply = { iceServers: [{ urls: 'stun:127.0.0.1:9' }] };
  cluster.cut();
  await eventually(() => servers.includes('stun:127.0.0.1:9'), 'an offer with the other relay');
  await flowing(call, video);
});

test('who is watched is said again on every node that the socket comes to', async (t) => {
  const { cluster, call } = await joined(t, {}, { watch: true });
  const lists = () => cluster.heard.filter(({ type }) => type === 'watch').map(({ users }) => users.join());
  call.watch(['ann', 'bob']);
  const told = once(call, 'presence');
  cluster.say({ type: 'presence', users: [{ user: 'ann', state: 'online', since: 5 }, { user: 'bob', state: 'unknown' }] });
  equal((await told).changes, [{ user: 'ann', state: 'online', since: 5 }]);
  cluster.cut();
  await eventually(() => lists().length === 2, 'said again');
  equal([lists(), call.watched.map(({ state }) => state), call.errors], [['ann,bob', 'ann,bob'], ['online', 'unknown'], []]);
});

test('who may not watch is told', async (t) => {
  const { cluster, call } = await joined(t);
  call.watch(['ann']);
  equal([call.errors, cluster.heard.some(({ type }) => type === 'watch')], [['not_watched'], false]);
});

if (able) test('a restart that finds no way to its node is told, and the way that is found later', async (t) => {
  const { cluster, call, video } = await joined(t);
  cluster.node.kill();
  cluster.unreachable = true;
  cluster.move('n2', { attemptMs: 1500 });
  await eventually(() => cluster.paths.length === 1, 'told');
  equal(cluster.paths, [{ way: '', udp: false }], 'the way to the former node says nothing');
  cluster.unreachable = false;
  await eventually(() => cluster.paths.length === 2, 'told again');
  equal([cluster.paths[1].way, cluster.paths[1].udp], ['UDP', true]);
  await flowing(call, video);
});

test('the socket and the node die together: one resume, one restart', async (t) => {
  const { cluster, call, video } = await joined(t);
  const migrated = done(call);
  cluster.node.kill();
  cluster.move('n2', { silent: true });
  cluster.resumeReply = { mediaAlive: false };
  cluster.cut();
  const { how, node } = await migrated;
  equal({ how, node }, { how: best, node: 'n2' });
  await flowing(call, video);
});

test('an offer whose answer was lost with the socket keeps its id', async (t) => {
  const { cluster, call, video } = await joined(t);
  const migrated = done(call);
  cluster.node.kill();
  cluster.loseAnswers = 1;
  cluster.move('n2');
  await eventually(() => cluster.node.offers.length === 1, 'the offer came');
  cluster.cut();
  await migrated;
  await flowing(call, video);
  equal(new Set(cluster.node.offers.map(({ id }) => id)).size, 1);
});

test('a new name is said, and said again after a resume', async (t) => {
  const { cluster, call } = await joined(t, {}, { rename: true });
  const names = () => cluster.heard.filter(({ type }) => type === 'rename').map(({ name }) => name);
  call.rename('Grace');
  await eventually(() => names().length === 1, 'the name was said');
  cluster.cut();
  await eventually(() => names().length === 2, 'and again');
  equal(names(), ['Grace', 'Grace']);
  equal(call.errors, []);
});

test('a session that can no longer be resumed is joined anew, in the same streams', async (t) => {
  const { cluster, call, video } = await joined(t);
  const stream = call.stream('ada', 'camera');
  cluster.resumeError = { code: 'resume_expired', message: 'Join again.', retryable: false };
  cluster.cut();
  await eventually(() => cluster.heard.filter(({ type }) => type === 'join').length === 2, 'joined again');
  await eventually(() => call.state === 'live', 'live again');
  same(call.stream('ada', 'camera'), stream);
  await flowing(call, video);
});

test('our own path breaks: an ICE restart on the same node, and no migration', async (t) => {
  const { cluster, call, video } = await joined(t);
  const { pcId, epoch } = await call.stats();
  const { pc } = cluster.node;
  // A machine that stands still for a second stops the media, too: then the offer is right, and the page tries again.
  await eventually(async () => {
    const { offersSent } = await call.stats();
    window.dispatchEvent(new Event('online'));
    await flowing(call, video);
    await new Promise((resolve) => setTimeout(resolve, 1200));
    return (await call.stats()).offersSent === offersSent;
  }, 'no offers while media flows');
  // A path cannot be cut inside one page: the statistics stand still instead, as they would.
  const { stats: look } = Transport.prototype;
  const frozen = new Map();
  Transport.prototype.stats = async function stats() {
    if (!frozen.has(this)) frozen.set(this, await look.call(this));
    return frozen.get(this);
  };
  t.cleanup(() => (Transport.prototype.stats = look));
  const before = cluster.node.offers.length;
  window.dispatchEvent(new Event('online'));
  await eventually(() => cluster.node.offers.length === before + 1, 'an offer to the same node');
  Transport.prototype.stats = look;
  same(cluster.node.pc, pc, 'the node keeps its connection');
  await flowing(call, video);
  const stats = await call.stats();
  equal([stats.pcId, stats.epoch, stats.node], [pcId, epoch, 'n1']);
  equal(cluster.node.offers.at(-1).fresh, false);
  equal(call.events, []);
});

test('the node lost our connection: a new one on the same node, and no migration', async (t) => {
  const { cluster, call, video } = await joined(t);
  const states = [];
  call.addEventListener('state', ({ detail }) => states.push(detail.state));
  const { pcId, epoch } = await call.stats();
  const mended = once(call, 'mended');
  // Unasked, as an edge does that finds the connection gone.
  cluster.node.kill();
  cluster.node.dead = false;
  cluster.say({ type: 'resumed', node: 'n1', epoch, seq: 1, roster: cluster.roster, slots: cluster.slots(), resume: 'token-2', mediaAlive: false });
  const { node, how, gapMs } = await mended;
  equal({ node, how }, { node: 'n1', how: 'new-connection' });
  ok(gapMs > 0, `gap ${gapMs} ms`);
  await flowing(call, video);
  const stats = await call.stats();
  ok(stats.pcId > pcId, 'a new connection');
  equal([stats.epoch, stats.node, stats.migrations], [epoch, 'n1', []]);
  equal(call.events, [], 'nothing is called a move');
  ok(!cluster.heard.some(({ type }) => type === 'migrated'), 'nor told to the server as one');
  equal([states[0], states.at(-1), states.includes('moving')], ['mending', 'live', false]);
});

test('a move whose gap was not known yet is still told when the new connection breaks', async (t) => {
  const { cluster, call, video } = await joined(t);
  cluster.node.kill();
  cluster.move('n2');
  await eventually(() => cluster.node.offers.length === 1, 'the offer came');
  await eventually(() => call.state === 'live', 'there');
  const migrated = done(call);
  const known = call.events.some(({ phase }) => phase === 'done');
  cluster.node.kill();
  cluster.say({ type: 'resumed', node: 'n2', epoch: cluster.epoch, seq: 1, roster: cluster.roster, slots: cluster.slots(), resume: 'token-2', mediaAlive: false });
  if (!known) equal((await migrated).node, 'n2');
  await flowing(call, video);
  equal(cluster.heard.filter(({ type }) => type === 'migrated').map(({ epoch }) => epoch), [cluster.epoch], 'one move, told once');
});

test('muting stops the packets and says so', async (t) => {
  const { cluster, call } = await joined(t);
  await call.setMuted('camera', true);
  ok(cluster.heard.some(({ type, source, muted }) => type === 'mute' && source === 'camera' && muted), 'mute said');
  const sent = async () => (await call.stats()).outbound.filter(({ source }) => source === 'camera').reduce((sum, { packetsSent }) => sum + packetsSent, 0);
  await eventually(async () => {
    const before = await sent();
    await new Promise((resolve) => setTimeout(resolve, 300));
    return (await sent()) === before;
  }, 'the camera is silent');
  await call.setMuted('camera', false);
  const before = await sent();
  await eventually(async () => (await sent()) > before + 3, 'the camera sends again');
});

test('failures to join have a code and a sentence', async (t) => {
  const cluster = new FakeCluster(new MediaStream());
  cluster.joinError = { code: 'room_full', message: 'The room is full. Try again when somebody has left.', retryable: false };
  const call = new Call({ WebSocket: cluster.WebSocket });
  const error = await call.join({ url: location.origin, token: 't' }).then(() => null, (thrown) => thrown);
  equal([error?.code, error?.message, call.state], ['room_full', cluster.joinError.message, 'left']);
  cluster.refuseSockets = Infinity;
  const lonely = new Call({ WebSocket: cluster.WebSocket });
  const unreachable = await lonely.join({ url: location.origin, token: 't', joinLimitMs: 800 }).then(() => null, (thrown) => thrown);
  equal([unreachable?.code, unreachable?.retryable], ['unreachable', true]);
  const bad = await new Call().join({ url: 'ftp://x', token: 't' }).then(() => null, (thrown) => thrown);
  equal(bad?.code, 'bad_url');
});

test('a message to all goes to each identity in the call but the own one', async (t) => {
  const { cluster, call } = await joined(t, {}, { message: 'room' });
  const became = call.sendToAll({ poll: 1 }, { kind: 'app' });
  await eventually(() => cluster.heard.some(({ type }) => type === 'message'), 'said');
  const { to, kind, body, stream, seq } = cluster.heard.find(({ type }) => type === 'message');
  equal([to, kind, body], [['ada'], 'app', { poll: 1 }]);
  cluster.say({ type: 'message-state', to: 'ada', stream, seq, state: 'delivered' });
  equal([...(await became)], [['ada', 'delivered']]);
});
