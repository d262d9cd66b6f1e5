// The connection in figures.

import { readStats } from '/holdfast/stats.js';
import { learnWays, settledWays, WayNews, wayOf } from '/holdfast/ways.js';
import { detailsOf } from '/page/details.js';
import { equal, test } from './harness.js';

const stats = (bytes, over = {}) => ({
  node: 'sfu-2', epoch: 7, rttMs: 12.4, sentLoss: 0.02, path: { protocol: 'udp', relayed: false, address: '10.0.0.7:40084' }, ways: { UDP: true, TCP: false },
  outbound: [
    { source: 'camera', rid: 'h', ssrc: 1, kind: 'video', active: true, bytesSent: bytes, framesEncoded: bytes / 1000, frameWidth: 960, frameHeight: 540 },
    { source: 'camera', rid: 'l', ssrc: 2, kind: 'video', active: false, bytesSent: 0, framesEncoded: 0, frameWidth: 0, frameHeight: 0 },
  ],
  perSlot: {
    4: { mid: '4', peer: 'p1', source: 'microphone', kind: 'audio', bytesReceived: bytes / 10, packetsReceived: bytes / 100, packetsLost: 0 },
    5: { mid: '5', peer: 'p1', source: 'camera', kind: 'video', bytesReceived: bytes, packetsReceived: bytes / 1000, packetsLost: bytes / 4000, framesDecoded: bytes / 1000, frameWidth: 640, frameHeight: 360 },
    6: { mid: '6', peer: '', source: '', kind: 'video' },
  },
  ...over,
});

const plain = (groups) => groups.map(({ title, rows }) => [title, ...rows.map((row) => row.join(': ').replaceAll(/[\u2066-\u2069]/g, '').replaceAll('\u00a0', ' '))]);
const names = new Map([['me', 'Me'], ['p1', 'Ada']]);

test('each stream has its layer, size, pictures, bitrate and loss', () => {
  equal(plain(detailsOf(stats(90_000), stats(30_000), 2, names)), [
    ['Connection', 'Server: sfu-2 · epoch 7', 'Path: UDP · direct · 10.0.0.7:40084', 'Ways tried: UDP answers · TCP gives no answer', 'Round trip: 12 ms', 'Sent lost: 2%'],
    ['Sent', 'Camera: h · 960 × 540 · 30 fps · 240 kb/s'],
    ['Ada', 'Microphone: 24 kb/s', 'Camera: 640 × 360 · 30 fps · 240 kb/s · 20% lost'],
  ]);
});

test('a connection that replaced another one counts from its own beginning', () => {
  const [, , [, sound]] = plain(detailsOf(stats(20_000), stats(9_000_000), 2, names));
  equal(sound, 'Microphone: 8 kb/s');
  const other = stats(90_000);
  other.perSlot[4].peer = other.perSlot[5].peer = 'p9';
  equal(plain(detailsOf(stats(90_000), other, 2, names))[2][1], 'Microphone: 0 kb/s', 'the slot was of somebody else');
});

test('the way is that of the chosen pair', () => {
  const report = (local) => [
    ['t', { type: 'transport', selectedCandidatePairId: 'p' }], ['p', { localCandidateId: 'l', remoteCandidateId: 'r', currentRoundTripTime: 0.02 }],
    ['l', { candidateType: 'host', protocol: 'udp', ...local }], ['r', { candidateType: 'host', address: 'fd00::1', port: 9 }],
  ];
  equal(readStats(report({})).transport.path, { protocol: 'udp', relayed: false, address: '[fd00::1]:9' });
  equal(readStats(report({ candidateType: 'relay', relayProtocol: 'tls' })).transport.path, { protocol: 'tls', relayed: true, address: '[fd00::1]:9' });
  equal(readStats([]).transport.path, { protocol: '', relayed: false, address: '' });
});

test('ways that were tried, and which answered, are remembered', () => {
  const entries = (...all) => new Map(all.map((entry, i) => [entry.id ?? String(i), entry]));
  const locals = [
    { id: 'u', type: 'local-candidate', candidateType: 'host', protocol: 'udp' }, { id: 't', type: 'local-candidate', candidateType: 'prflx', protocol: 'tcp' },
    { id: 'r', type: 'local-candidate', candidateType: 'relay', protocol: 'udp' },
  ];
  const pair = (localCandidateId, over = {}) => ({ type: 'candidate-pair', localCandidateId, state: 'in-progress', requestsSent: 1, responsesReceived: 0, ...over });
  equal(learnWays({}, entries(), false), {});
  equal(learnWays({}, entries(), true), { TURN: null });
  const begun = learnWays({}, entries(...locals.slice(0, 2), pair('u'), pair('t', { requestsSent: 0 })), false);
  equal([begun, settledWays(begun)], [{ UDP: null, TCP: null }, { UDP: false, TCP: false }]);
  const won = learnWays(begun, entries(...locals.slice(0, 2), pair('u', { responsesReceived: 1 }), pair('t', { requestsSent: 0 })), false);
  equal(settledWays(won), { UDP: true }, 'the other one was ended before its answer');
  const byTCP = learnWays(begun, entries(...locals.slice(0, 2), pair('u'), pair('t', { responsesReceived: 1 })), false);
  equal(settledWays(byTCP), { UDP: false, TCP: true }, 'a browser does not end what it prefers');
  const fallen = learnWays(begun, entries(...locals, pair('u', { requestsSent: 20 }), pair('t', { responsesReceived: 3 })), true);
  equal(settledWays(fallen), { UDP: false, TCP: true, TURN: true });
  const later = learnWays(fallen, entries(...locals.slice(0, 2), pair('u', { state: 'succeeded' }), pair('t', { state: 'failed' })), false);
  equal(settledWays(later), { UDP: true, TCP: true, TURN: true });
  const restarted = learnWays({}, entries(...locals, pair('u', { id: 'old', state: 'succeeded' }), pair('u', { id: 'new', requestsSent: 20 })), true, new Set(['r', 'old']));
  equal(settledWays(restarted), { UDP: false, TURN: false }, 'what led to another node says nothing');
});

test('the server is told of each other way than UDP, once', () => {
  const news = new WayNews();
  const [udp, tcp, none] = [{ protocol: 'udp', relayed: false }, { protocol: 'tcp', relayed: false }, { protocol: '', relayed: false }].map(wayOf);
  equal(news.next(udp, { UDP: true }), null);
  equal(news.next(tcp, { UDP: false, TCP: true }), { way: 'TCP', udp: false, tcp: true, turn: undefined });
  equal(news.next(tcp, { UDP: false, TCP: true }), null);
  equal(news.next(wayOf({ protocol: 'tls', relayed: true }), { TURN: true }).way, 'TURN');
  equal(news.next(none, { UDP: false }), { way: '', udp: false, tcp: undefined, turn: undefined });
  equal(news.next(udp, { UDP: true }).way, 'UDP');
});
