// The policies and the little parsers: pure, so they are told in tables.

import { canMoveLiveConnection } from '/holdfast/capability.js';
import { IceServers } from '/holdfast/ice-servers.js';
import { layersFor } from '/holdfast/layers.js';
import { judge, newborn, secured } from '/holdfast/liveness.js';
import { socketUrl } from '/holdfast/address.js';
import { reconnectDelayMs } from '/holdfast/reconnect-policy.js';
import { RestartPolicy } from '/holdfast/restart-policy.js';
import { Roster } from '/holdfast/roster.js';
import { shareAddress, withSoundRepair } from '/holdfast/sdp.js';
import { isDue, StallWatch } from '/holdfast/stall.js';
import { readStats } from '/holdfast/stats.js';
import { readParameters } from '/page/parameters.js';
import { equal, eventually, ok, test } from './harness.js';

const told = (policy, failures) => [policy.first(), ...failures.map((failure) => policy.next(failure))]
  .map(({ how, attempt }) => `${how} ${attempt}`);

test('a restart is tried three times, then a new connection, for ever', () => {
  equal(told(new RestartPolicy({ canMove: true }), ['timeout', 'timeout', 'timeout', 'timeout']), [
    'restart 1', 'restart 2', 'restart 3', 'new-connection 4', 'new-connection 5',
  ]);
});

test('a rejected answer goes straight to a new connection', () => {
  equal(told(new RestartPolicy({ canMove: true }), ['rejected', 'timeout']), ['restart 1', 'new-connection 2', 'new-connection 3']);
});

test('a browser that cannot move takes a new connection at once', () => {
  equal(told(new RestartPolicy({ canMove: false }), ['timeout']), ['new-connection 1', 'new-connection 2']);
});

test('an answer from the address in use needs an ICE restart', () => {
  const policy = new RestartPolicy({ canMove: true, keepsIce: true });
  equal([policy.first(), policy.next('taken')].map(({ how, iceRestart, waitMs }) => [how, iceRestart, waitMs]), [['restart', false, 0], ['restart', true, 0]]);
  const answer = (...addresses) => addresses.map((address) => `a=candidate:1 1 ${address} typ host\r\n`).join('');
  const here = answer('udp 2130706431 10.0.0.1 7000', 'tcp 1671430143 10.0.0.1 7000');
  ok(shareAddress(here, answer('udp 1 10.0.0.2 7000', 'tcp 2 10.0.0.1 7000')));
  ok(!shareAddress(here, answer('udp 2130706431 10.0.0.2 7000', 'udp 2130706431 10.0.0.1 7001')) && !shareAddress('', here));
});

test('every attempt is bounded, new connections slow down, and the person is told at the third', () => {
  const policy = new RestartPolicy({ canMove: false, attempts: 1e9, attemptMs: 1e9 });
  const steps = [policy.first()];
  for (let n = 0; n < 12; n++) steps.push(policy.next('timeout'));
  ok(steps.every(({ limitMs }) => limitMs === 15000), 'the limit is bounded');
  equal(steps.slice(0, 7).map(({ waitMs }) => waitMs), [0, 500, 1000, 2000, 4000, 8000, 10000]);
  equal(steps.slice(0, 4).map(({ alarm }) => alarm), [false, false, true, true]);
  equal(new RestartPolicy({ canMove: true, attemptMs: 0 }).first().limitMs, 500);
});

test('the socket is tried again quickly first, then slower, never slower than five seconds', () => {
  ok(reconnectDelayMs(0, () => 1) <= 120, 'the first try is quick');
  let last = 0;
  for (let tries = 1; tries < 40; tries++) {
    const [least, most] = [reconnectDelayMs(tries, () => 0), reconnectDelayMs(tries, () => 1)];
    ok(least >= last / 2 && most <= 5000 && least * 2 === most, `${tries}: ${least} to ${most}`);
    last = most;
  }
  equal(last, 5000);
});

test('only a Chromium that is known to be able moves a live connection', () => {
  const brands = (version) => ({ userAgent: '', userAgentData: { brands: [{ brand: 'Not.A/Brand', version: '99' }, { brand: 'Chromium', version }] } });
  const agent = (userAgent) => ({ userAgent });
  ok(canMoveLiveConnection(brands('156')));
  ok(!canMoveLiveConnection(brands('80')));
  ok(canMoveLiveConnection(agent('Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36')));
  ok(!canMoveLiveConnection(agent('Mozilla/5.0 (X11; Linux x86_64; rv:153.0) Gecko/20100101 Firefox/153.0')));
  ok(!canMoveLiveConnection(agent('Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/19.0 Safari/605.1.15')));
  ok(!canMoveLiveConnection(agent('Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) CriOS/156.0 Mobile/15E148 Safari/604.1')));
  equal(canMoveLiveConnection(navigator), !navigator.userAgent.includes('Firefox'), 'the browser of this test');
});

test('DTLS is proven by the certificate, or by the handshake that was seen, never by a state alone', () => {
  const before = { dtlsState: 'connected', iceState: 'connected', certificate: 'sha-256 OLD', answered: 'sha-256 OLD', ssrcs: new Set() };
  const is = (now, since = {}) => secured({ ...before, ...now }, before, { announced: 'sha-256 NEW', renewed: false, ...since });
  ok(!is({}), 'Firefox says connected and has the old session');
  ok(is({ certificate: 'sha-256 NEW' }));
  ok(is({ certificate: 'sha-256 NEW', iceState: 'disconnected' }), 'ICE states may lag');
  ok(!is({ certificate: 'sha-256 NEW', dtlsState: 'connecting' }));
  ok(is({ certificate: '' }), 'a certificate that was there and is gone');
  ok(is({}, { renewed: true }));
  ok(!is({ iceState: 'failed' }, { announced: 'sha-256 OLD' }), 'the same node, ICE has no path');
  ok(is({}, { announced: 'sha-256 OLD' }), 'the same node, ICE has one');
  const none = { dtlsState: 'new', iceState: 'new', certificate: '', answered: '', ssrcs: new Set() };
  ok(secured({ ...before, certificate: '' }, none, { announced: 'sha-256 NEW', renewed: false }), 'a new connection');
});

const inbound = (ssrc, packetsReceived, mid = '3') => [`in${ssrc}`, { type: 'inbound-rtp', kind: 'video', mid, ssrc, packetsReceived, framesDecoded: 0 }];
const transport = (packetsReceived) => ['t', { type: 'transport', dtlsState: 'connected', remoteCertificateId: 'c', packetsReceived }];

test('media is alive when packets come, quiet when only control packets do', () => {
  const base = readStats([inbound(1, 10), transport(20)]);
  equal(judge(base, readStats([inbound(1, 11), transport(21)])), 'alive');
  equal(judge(base, readStats([inbound(1, 10), transport(21)])), 'quiet');
  equal(judge(base, readStats([inbound(1, 10), transport(20)])), 'secured');
});

test('the address of the socket lies where the service lies', () => {
  const own = location.origin.replace('http', 'ws');
  equal(['https://host', 'https://host/call/', 'wss://host/call/ws?a=b#c', new URL('https://host/'), '/call/'].map(socketUrl), [
    'wss://host/ws', 'wss://host/call/ws', 'wss://host/call/ws?a=b', 'wss://host/ws', `${own}/call/ws`,
  ]);
});

test('an SSRC that was not there before tells a new node', () => {
  const base = readStats([inbound(1, 10)]);
  ok(newborn(base, readStats([inbound(1, 10), inbound(2, 1)]), new Set([1])));
  ok(!newborn(base, readStats([inbound(1, 30)]), new Set([1])));
});

test('statistics of one m-line under several SSRCs are one sum', () => {
  const stats = readStats([inbound(1, 10), inbound(2, 5), transport(9), ['c', { fingerprintAlgorithm: 'SHA-256', fingerprint: 'ab:cd' }]]);
  equal([stats.inbound.get('3').packetsReceived, stats.transport.certificate], [15, 'sha-256 AB:CD']);
});

test('a camera is never sent smaller than it need be', () => {
  const sent = (...size) => layersFor(...size).filter(({ active }) => active).map(({ rid, scaleResolutionDownBy }) => rid + scaleResolutionDownBy);
  equal(sent(1280, 720), ['q4', 'h2', 'f1']);
  equal(sent(540, 960), ['q4', 'h2', 'f1'], 'a phone held upright');
  equal(sent(640, 360), ['q2', 'h1']);
  equal(sent(320, 180), ['q1']);
  equal(sent(0, 0), ['q4', 'h2', 'f1'], 'unknown');
});

test('a roster takes each change once and in order', () => {
  const roster = new Roster();
  const person = (peer, name = peer) => ({ peer, identity: peer, name, audioMuted: false, videoMuted: false });
  equal(roster.replace({ roster: [person('a'), person('b')], epoch: 5, seq: 10 }), []);
  ok(roster.apply({ type: 'peer-joined', peer: person('c'), epoch: 5, seq: 11 }));
  ok(!roster.apply({ type: 'peer-left', peer: 'c', epoch: 5, seq: 11 }), 'seen before');
  ok(!roster.apply({ type: 'peer-left', peer: 'c', epoch: 4, seq: 99 }), 'of a past epoch');
  ok(roster.apply({ type: 'peer-left', peer: 'a', epoch: 6, seq: 1 }), 'a new epoch counts anew');
  equal([roster.entries.map(({ peer }) => peer), roster.cursor], [['b', 'c'], { epoch: 6, seq: 1 }]);
  equal(roster.replace({ roster: [person('c')], epoch: 6, seq: 2 }), ['b']);
  ok(roster.apply({ type: 'roster-changes', entries: [person('d'), person('e')], left: ['c'], epoch: 6, seq: 5 }), 'several');
  ok(!roster.apply({ type: 'roster-changes', entries: [], left: ['d'], epoch: 6, seq: 5 }), 'several seen before');
  equal([roster.entries.map(({ peer }) => peer), roster.cursor], [['d', 'e'], { epoch: 6, seq: 5 }]);
});

test('page parameters are bounded', () => {
  const { width, fps, audioSlots, videoSlots, simulcast, autojoin, moveLive } = readParameters('?width=99999&fps=x&audio=-3&video=99&simulcast=0&autojoin=1&restart=0');
  equal([width, fps, audioSlots, videoSlots, simulcast, autojoin, moveLive], [3840, 30, 0, 32, false, true, false]);
});

test('a connection on which media ran and nothing comes any more has stalled', () => {
  const watch = new StallWatch();
  const look = (atMs, media, others) => watch.look({ received: new Map([[7, media]]), transport: { packetsReceived: others } }, atMs);
  equal([look(0, 0, 5), look(1000, 50, 60), look(2000, 50, 60), look(3000, 50, 60), look(4000, 50, 60)], [0, 0, 0, 2000, 3000]);
  equal([look(5000, 50, 61), look(6000, 50, 61), look(9000, 50, 61)], [0, 0, 0], 'nobody sends: control packets are the last that came');
  equal([look(10000, 51, 62), look(12000, 51, 62)], [0, 2000]);
  watch.reset();
  equal([look(13000, 51, 62), look(14000, 51, 62), look(16000, 51, 62)], [0, 0, 0], 'begins anew');
  equal([look(17000, 52, 63), look(19000, 52, 63)], [0, 2000]);
});

test('packets are due of a microphone that is on', () => {
  const slots = [{ peer: 'ada', source: 'microphone' }, { peer: 'bob', source: 'camera' }, { peer: '', source: '' }];
  const roster = (audioMuted) => [{ peer: 'ada', audioMuted }, { peer: 'bob', audioMuted: false }];
  equal([isDue(slots, roster(false)), isDue(slots, roster(true)), isDue([], roster(false)), isDue(slots, [])], [true, false, false, false]);
});

test('lost sound is asked for again, whatever the numbers of the offer, and pictures are left alone', () => {
  const offer = (feedback) => ['v=0', 'm=audio 9 X 96 111', 'a=rtpmap:96 G722/8000', 'a=rtpmap:111 opus/48000/2', ...feedback, 'a=rtcp-fb:111 transport-cc',
    'm=video 9 X 96', 'a=rtpmap:96 VP8/90000', ''].join('\r\n');
  equal(withSoundRepair(offer([])), offer(['a=rtcp-fb:111 nack']));
  equal(withSoundRepair(offer(['a=rtcp-fb:111 nack'])), offer(['a=rtcp-fb:111 nack']));
  equal(withSoundRepair('v=0\r\n'), 'v=0\r\n');
});

test('servers for ICE are asked for before their credentials end, and an older node takes none away', async ({ cleanup }) => {
  let asked = 0;
  const servers = new IceServers(() => asked++);
  cleanup(() => servers.close());
  const told = [{ urls: ['turn:relay.test'], username: '1:a.b', credential: 'c' }];
  ok(servers.heard({ iceServers: told, iceServersForMs: 40 }), 'others');
  ok(!servers.heard({ iceServers: structuredClone(told), iceServersForMs: 40 }), 'the same are no others');
  await eventually(() => asked === 1, 'asked');
  ok(!servers.heard({}), 'none told');
  equal(servers.list, told);
});
