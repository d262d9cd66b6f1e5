// Streams that should be shown and are not: how that is seen, what is done about it, and how long
// it lasted. Pure, so it is told in tables.

import { GapWatch } from '/holdfast/gap-watch.js';
import { GapMeter } from '/holdfast/gap.js';
import { FreezePolicy } from '/holdfast/freeze-policy.js';
import { FreezeWatch, isExpected } from '/holdfast/freeze.js';
import { ReofferPolicy } from '/holdfast/reoffer-policy.js';
import { SlotTable } from '/holdfast/slots.js';
import { equal, ok, test } from './harness.js';

/** What the policy says of a stream that stays frozen, looked at every quarter of a second. */
function ladder(stream, { people = 2, untilMs = 10000, random = () => 0, silent = false, shows = false, policy = new FreezePolicy(random), fromMs = 0 } = {}) {
  const said = [];
  for (let frozenMs = 250; frozenMs <= untilMs; frozenMs += 250) {
    const frozen = [{ key: 'ada/camera', mid: '4', sends: false, moved: false, proven: false, doubt: 1, ...stream, frozenMs }];
    const { refresh, how, givenUp } = policy.next(frozen, { nowMs: fromMs + frozenMs, people, silent, shows });
    if (refresh.length > 0) said.push(`${frozenMs} refresh ${refresh}`);
    if (how !== '') said.push(`${frozenMs} ${how}`);
    if (givenUp.length > 0 && !said.includes('given up')) said.push('given up');
  }
  return said;
}

const renewals = (said) => said.filter((line) => !line.includes('refresh'));

test('a picture that did not come back after a move: ask, offer anew, new connection', () => {
  equal(ladder({ moved: true }), [
    '1000 refresh 4', '2000 refresh 4', '2500 restart', '3000 refresh 4', '4000 new-connection', '4500 refresh 4', '9000 refresh 4',
  ]);
});

test('a publisher that sends nothing is asked for slower and slower, and nobody reconnects', () => {
  equal(ladder({}, { untilMs: 200000 }), [1, 2, 4, 8, 16, 32, 64, 124, 184].map((seconds) => `${seconds * 1000} refresh 4`));
});

test('what was shown before a move renews the connection once for each move', () => {
  const policy = new FreezePolicy(() => 0);
  equal(renewals(ladder({ moved: true }, { policy, untilMs: 200000 })), ['2500 restart', '4000 new-connection']);
  policy.reset();
  equal(renewals(ladder({ moved: true }, { policy, untilMs: 200000, fromMs: 300000 })), ['2500 restart', '4000 new-connection'], 'another move');
});

test('a stream that arrives and is not decoded is asked for four times and given up, and never renews the connection', () => {
  const asked = [1, 2, 4, 8].map((seconds) => `${seconds * 1000} refresh 4`);
  equal(ladder({ sends: true }, { untilMs: 200000 }), [...asked, 'given up'], 'it was never shown');
  equal(ladder({ sends: true, proven: true }, { untilMs: 200000, shows: true }), [...asked, 'given up'], 'others are shown');
  const policy = new FreezePolicy(() => 0);
  ladder({ sends: true }, { policy, untilMs: 20000 });
  policy.next([], { nowMs: 20250, people: 2, silent: false, shows: true });
  equal(ladder({ sends: true }, { policy, untilMs: 200000, fromMs: 21000 }), [...asked, 'given up'], 'another time');
  equal(ladder({}, { untilMs: 200000 }).includes('given up'), false, 'a publisher who sends nothing may come back');
});

test('when nothing that arrives is shown although it was, the connection is renewed, twice at most', () => {
  const policy = new FreezePolicy(() => 0);
  equal(renewals(ladder({ sends: true, proven: true }, { policy, untilMs: 200000 })), ['2500 restart', '4000 new-connection', 'given up']);
  policy.next([], { nowMs: 201000, people: 2, silent: false, shows: true });
  equal(renewals(ladder({ sends: true, proven: true }, { policy, untilMs: 5000, fromMs: 300000 })), ['2500 restart', '4000 new-connection'], 'after it was shown again');
});

test('who sends something undecodable does not hinder the repair of a connection', () => {
  const policy = new FreezePolicy(() => 0);
  const said = [];
  for (let nowMs = 250; nowMs <= 60000; nowMs += 250) {
    const eve = { key: 'eve/camera', mid: '5', frozenMs: nowMs, sends: true, moved: false, proven: false, doubt: 1 };
    const ada = (from) => (nowMs > from && nowMs <= from + 6000 ? [{ key: 'ada/camera', mid: '4', frozenMs: nowMs - from, sends: false, moved: true, proven: true, doubt: 1 }] : []);
    const { how } = policy.next([eve, ...ada(10000), ...ada(40000)], { nowMs, people: 3, silent: false, shows: true });
    if (how !== '') said.push(`${nowMs} ${how}`);
  }
  equal(said, ['12500 restart', '14000 new-connection', '42500 restart', '44000 new-connection']);
});

test('a picture that freezes anew after each new connection does not renew it faster', () => {
  const policy = new FreezePolicy(() => 0);
  const times = [];
  for (let round = 0; round < 40; round++) {
    const fromMs = round * 5000;
    times.push(...renewals(ladder({ sends: true, proven: true }, { policy, untilMs: 4500, fromMs })).filter((line) => line.includes('new')));
    policy.next([], { nowMs: fromMs + 4750, people: 2, silent: false, shows: true });
  }
  ok(times.length >= 3 && times.length <= 6, `${times.length} new connections in 200 s`);
});

test('a person who may only be late is waited for longer, and a crowd does not come all at once', () => {
  equal(renewals(ladder({ moved: true, doubt: 4 }, { untilMs: 20000 })), ['10000 restart', '16000 new-connection']);
  equal(renewals(ladder({ moved: true }, { people: 250, random: () => 1, untilMs: 30000 })), ['12500 restart', '20000 new-connection']);
  equal(renewals(ladder({ moved: true }, { people: 250, random: () => 0 })), ['2500 restart', '4000 new-connection']);
});

test('nobody is asked on a connection that is silent: its node may be dead', () => {
  equal(ladder({ moved: true, doubt: 4 }, { silent: true }), ['10000 restart']);
});

test('each stream is asked about on its own, and one renewal serves all', () => {
  const policy = new FreezePolicy(() => 0);
  const frozen = (key, mid, frozenMs) => ({ key, mid, frozenMs, sends: false, moved: true, proven: true, doubt: 1 });
  const next = (nowMs, ...streams) => policy.next(streams, { nowMs, people: 2, silent: false, shows: false });
  equal(next(1000, frozen('a', '3', 1000), frozen('b', '4', 250)), { refresh: ['3'], how: '', givenUp: [] });
  equal(next(1750, frozen('a', '3', 1750), frozen('b', '4', 1000)), { refresh: ['4'], how: '', givenUp: [] });
  equal(next(2500, frozen('a', '3', 2500), frozen('b', '4', 1750)), { refresh: ['3'], how: 'restart', givenUp: [] });
  equal(next(3250, frozen('b', '4', 2500)).how, '', 'the second was offered anew with the first');
});

test('a node that asks for an offer gets one, then a new connection, then is heard ever more seldom', () => {
  const asked = (everyMs, untilMs) => {
    const policy = new ReofferPolicy();
    const done = [];
    for (let at = 0; at <= untilMs; at += everyMs) {
      const how = policy.next(at);
      if (how !== '') done.push(`${at / 1000} ${how}`);
    }
    return done;
  };
  equal(asked(5000, 360000), ['0 restart', ...[5, 20, 50, 110, 230, 350].map((at) => `${at} new-connection`)]);
  equal(asked(20000, 60000), ['0 restart', '20 restart', '40 restart', '60 restart']);
});

const figures = (fields) => ({ packetsReceived: 0, packetsLost: 0, bytesReceived: 0, framesDecoded: 0, totalSamplesReceived: 0, concealedSamples: 0, ...fields });
const camera = { mid: '4', kind: 'video', peer: 'ada', source: 'camera' };
const microphone = { mid: '3', kind: 'audio', peer: 'ada', source: 'microphone' };
const screen = { mid: '5', kind: 'video', peer: 'ada', source: 'screen' };

/** Looks once a second at these figures of one slot; tells frozenMs, with ! when its media arrives all the same. */
function looks(slot, rows, { missing = [], people = 2, others = [] } = {}) {
  const watch = new FreezeWatch();
  return rows.map((row, second) => {
    const inbound = new Map([[slot.mid, figures(row)], ...others.map(({ slot: { mid }, rows: of }) => [mid, figures(of[second])])]);
    const stats = { inbound, received: new Map([[7, row.packetsReceived ?? 0]]), transport: { packetsReceived: second } };
    const { frozen } = watch.look({ slots: [slot, ...others.map((other) => other.slot)], stats, missing: new Set(missing), people, nowMs: second * 1000 });
    const found = frozen.find(({ mid }) => mid === slot.mid);
    return found ? `${found.frozenMs}${found.sends ? '!' : ''}${found.moved ? ' moved' : ''}${found.doubt > 1 ? ' doubt' : ''}` : '';
  });
}

const frames = (...counts) => counts.map((framesDecoded) => ({ framesDecoded }));
const growing = (...rows) => rows.map((row, n) => ({ packetsReceived: 50 * n, bytesReceived: 40000 * n, ...row }));

test('a camera is frozen while no frame is decoded', () => {
  equal(looks(camera, frames(0, 15, 15, 15, 30, 30)), ['', '', '1000', '2000', '', '1000']);
  equal(looks(camera, growing(...frames(0, 15, 15, 15))), ['', '', '1000!', '2000!'], 'its packets come');
  equal(looks(camera, frames(9, 9, 0, 5)), ['', '1000', '2000', ''], 'another connection counts from nothing');
  equal(looks(camera, frames(0, 0, 0), { missing: ['ada/camera'] }), ['', '1000 moved', '2000 moved']);
});

test('what was shown once is known to be decodable, also after a move', () => {
  const watch = new FreezeWatch();
  const look = (second, framesDecoded) => {
    const stats = { inbound: new Map([['4', figures({ packetsReceived: 50 * second, bytesReceived: 9000 * second, framesDecoded })]]), received: new Map(), transport: { packetsReceived: second } };
    const { frozen, shown, shows } = watch.look({ slots: [camera], stats, missing: new Set(), people: 2, nowMs: second * 1000 });
    return [frozen.map(({ proven }) => proven), [...shown], shows];
  };
  equal([look(0, 0), look(1, 0), look(2, 5), look(3, 5)], [[[], [], false], [[false], [], false], [[], ['ada/camera'], true], [[true], [], true]]);
  watch.reset();
  equal([look(4, 0), look(5, 0)], [[[], [], true], [[true], [], false]]);
});

test('padding is no picture, and a path that loses packets is to blame itself', () => {
  equal(looks(camera, [{}, { packetsReceived: 9 }, { packetsReceived: 18 }]), ['', '1000', '2000']);
  const lost = (n) => ({ packetsReceived: 50 * n, packetsLost: 10 * n, bytesReceived: 4000 * n });
  equal(looks(camera, [0, 1, 2].map(lost)), ['', '1000', '2000']);
});

test('a screen that stands still is not frozen; one that arrives undecoded is', () => {
  equal(looks(screen, frames(1, 1, 1, 1)), ['', '', '', '']);
  const bytes = [0, 900, 900, 900, 900].map((bytesReceived, n) => ({ bytesReceived, framesDecoded: n < 4 ? 1 : 2 }));
  equal(looks(screen, bytes), ['', '', '1000', '2000', '']);
  equal(looks(screen, frames(0, 0, 0, 1), { missing: ['ada/screen'] }), ['', '1000', '2000', ''], 'after a move it must be shown once');
});

test('a sound is heard when packets come and not all of it is concealed', () => {
  equal(looks(microphone, [0, 50, 100].map((packetsReceived) => ({ packetsReceived }))), ['', '', ''], 'nobody listens: packets are enough');
  const heard = (n, concealedSamples) => ({ packetsReceived: 50 * n, bytesReceived: 4000 * n, totalSamplesReceived: 48000 * n, concealedSamples });
  equal(looks(microphone, [heard(0, 0), heard(1, 100), heard(2, 48100), heard(3, 96100), heard(4, 96200)]), ['', '', '1000!', '2000!', '']);
  equal(looks(microphone, [{}, {}, {}]), ['', '1000', '2000']);
});

test('what comes of a person tells whether the person is there', () => {
  const still = frames(0, 0, 0);
  const others = (packets) => [{ slot: microphone, rows: packets.map((packetsReceived) => ({ packetsReceived })) }];
  equal(looks(camera, still, { people: 3, others: others([0, 50, 100]) }), ['', '1000', '2000']);
  equal(looks(camera, still, { people: 3, others: others([0, 0, 0]) }), ['', '1000 doubt', '2000 doubt']);
  equal(looks(camera, still, { people: 2, others: others([0, 0, 0]) }), ['', '1000', '2000'], 'in twos there is no crowd');
});

test('a connection on which nothing at all arrives is silent, and every stream on it is in doubt', () => {
  const look = (dtlsState, ...packets) => {
    const watch = new FreezeWatch();
    const stats = (packetsReceived) => ({ inbound: new Map([['4', figures({})]]), received: new Map(), transport: { dtlsState, packetsReceived } });
    const said = packets.map((count, second) => watch.look({ slots: [camera], stats: stats(count), missing: new Set(), people: 2, nowMs: second * 1000 }));
    return [said.at(-1).silent, said.at(-1).frozen[0].doubt];
  };
  equal([look('connected', 1, 2), look('connected', 1, 1), look('', 0, 0)], [[false, 1], [true, 4], [false, 4]]);
});

test('a page that stood still does not blame the node, and one that is hidden watches nothing', () => {
  const watch = new FreezeWatch();
  const look = (nowMs, slots = [camera]) => watch.look({ slots, stats: { inbound: new Map([['4', figures({})]]), received: new Map(), transport: { packetsReceived: nowMs } }, missing: new Set(), people: 2, nowMs }).frozen.map(({ frozenMs }) => frozenMs);
  equal([look(0), look(60000), look(61000), look(90000), look(91000, []), look(92000), look(93000)], [[], [], [1000], [1000], [], [], [1000]]);
});

test('what should be shown is sent by somebody here and wanted by the page', () => {
  const entry = { peer: 'ada', audioMuted: false, videoMuted: false };
  const is = (source, { hidden = false, wants = [], ...change } = {}) => isExpected({ peer: 'ada', source }, { roster: [{ ...entry, ...change }], wants, hidden });
  const want = (width) => [{ peer: 'ada', source: 'camera', width, height: width }];
  equal([is('camera'), is('microphone'), is('screen'), is('screen', { screenShared: true })], [true, true, false, true]);
  equal([is('camera', { videoMuted: true }), is('microphone', { audioMuted: true }), is('camera', { hidden: true }), is('microphone', { hidden: true })], [false, false, false, true]);
  equal([is('camera', { wants: want(320) }), is('camera', { wants: want(0) }), is('screen', { screenShared: true, wants: want(320) })], [true, false, false]);
  equal([is('screen-audio'), is('screen-audio', { screenAudio: true, audioMuted: true, hidden: true })], [false, true]);
  ok(!isExpected({ peer: 'bob', source: 'camera' }, { roster: [entry], wants: [], hidden: false }), 'who is gone');
});

test('the gap is the longest time without a delivery of a source that was running', () => {
  const gap = new GapMeter();
  for (const [key, at] of [['a/camera', 1000], ['a/microphone', 1020], ['b/camera', -5000], ['a/camera', 1067]]) gap.observe(key, at);
  gap.begin();
  equal(gap.witnesses, 2, 'b was not running');
  gap.observe('a/microphone', 1040); // a straggler of the old node
  gap.mark();
  equal(gap.missing, ['a/camera', 'a/microphone']);
  gap.observe('a/microphone', 1300);
  equal(gap.missing, ['a/camera']);
  gap.observe('a/camera', 1290);
  equal(gap.missing, []);
  gap.observe('a/camera', 1357);
  equal(gap.longestMs, 260);
});

test('a source that was lost twice in a row is missed from its last delivery on', () => {
  const gap = new GapMeter();
  gap.observe('a/camera', 1000);
  gap.observe('a/microphone', 1000);
  gap.begin();
  gap.mark();
  gap.observe('a/microphone', 3000);
  gap.begin(); // the next journey, before the camera came back
  gap.mark();
  gap.observe('a/camera', 3500);
  gap.observe('a/microphone', 3500);
  equal([gap.missing, gap.longestMs], [[], 2500]);
});

test('a source that does not come back is named, and its time is not passed for a gap', () => {
  const gap = new GapMeter();
  gap.observe('a/camera', 1000);
  gap.observe('a/microphone', 1010);
  gap.begin();
  gap.mark();
  gap.observe('a/microphone', 1200);
  gap.observe('a/microphone', 6000);
  equal([gap.missing, gap.longestMs], [['a/camera'], 4800]);
});

test('one that had been frozen before its repair began is measured too', () => {
  const gap = new GapMeter();
  gap.observe('a/camera', 1000);
  gap.observe('a/microphone', 4000);
  gap.begin(new Set(['a/camera']));
  gap.mark();
  gap.observe('a/camera', 4100);
  gap.observe('a/microphone', 4100);
  equal([gap.missing, gap.longestMs], [[], 3100]);
});

/** The measurement of one move, in which these streams come back. */
async function measure({ back = [], lanes = 2, tables = [[camera, microphone]], expected = () => true, during = () => {} }) {
  const slots = new SlotTable();
  const at = { 3: 1000, 4: 1000 };
  const receiver = (mid) => ({ getSynchronizationSources: () => [{ timestamp: at[mid] }] });
  const lane = (mid, kind) => ({ mid, kind, receiver: receiver(mid), track: new RTCPeerConnection().addTransceiver(kind).receiver.track });
  slots.apply([camera, microphone]);
  slots.bind([lane('4', 'video'), lane('3', 'audio'), lane('5', 'video')].slice(0, lanes));
  const watch = new GapWatch(slots, expected, 60);
  watch.note();
  watch.begin(new Set());
  await new Promise((resolve) => setTimeout(resolve, 40));
  watch.mark();
  const measured = watch.measured();
  for (const table of tables) {
    slots.apply(table);
    watch.heard(table);
    watch.note();
  }
  during(watch);
  for (const [mid, ms] of back) at[mid] += ms;
  return measured;
}

test('a move tells the longest gap of all, and what has not come back', async () => {
  equal(await measure({ back: [['3', 120], ['4', 300]] }), { gapMs: 300, lost: [] });
  equal(await measure({ back: [['3', 120], ['4', 300]], tables: [[microphone], [], [camera, microphone]] }), { gapMs: 300, lost: [] }, 'a table that lacks the picture for a moment');
  equal(await measure({ back: [['3', 120]] }), { gapMs: 120, lost: [{ peer: 'ada', source: 'camera' }] });
  equal(await measure({ back: [['3', 120]], tables: [[microphone]] }), { gapMs: 120, lost: [{ peer: 'ada', source: 'camera' }] }, 'there is a place for it');
  equal(await measure({}), { gapMs: 0, lost: [{ peer: 'ada', source: 'camera' }, { peer: 'ada', source: 'microphone' }] });
});

test('nobody misses what is paused, muted, gone, or has given its place to somebody else', async () => {
  const silent = { back: [['3', 120]] };
  const fine = { gapMs: 120, lost: [] };
  equal(await measure({ ...silent, tables: [[{ ...camera, paused: true }, microphone]] }), fine);
  equal(await measure({ ...silent, during: (watch) => watch.forget('ada', 'camera') }), fine);
  equal(await measure({ ...silent, expected: ({ source }) => source === 'microphone' }), fine);
  equal(await measure({ ...silent, tables: [[{ ...camera, peer: 'bob' }, microphone]] }), fine);
  equal(await measure({ during: (watch) => watch.forget('ada') }), { gapMs: 0, lost: [] });
});
