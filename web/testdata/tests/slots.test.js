// Slots, the SSRC table and the messages.

import { readServerMessage } from '/holdfast/protocol.js';
import { fingerprint, sections, sendRids, sessionId, ssrcs } from '/holdfast/sdp.js';
import { SlotTable } from '/holdfast/slots.js';
import { SsrcTable } from '/holdfast/ssrc-table.js';
import { Transport } from '/holdfast/transport.js';
import { equal, ok, same, test } from './harness.js';

const options = { id: 1, iceServers: () => [], audioSlots: 6, videoSlots: 12, simulcast: true };

// Tracks that need no connection: those of idle receivers.
function lanes(cleanup) {
  const pc = new RTCPeerConnection();
  cleanup(() => pc.close());
  return ['3', '4', '5'].map((mid) => {
    const { receiver } = pc.addTransceiver(mid === '3' ? 'audio' : 'video', { direction: 'recvonly' });
    return { mid, kind: receiver.track.kind, track: receiver.track, receiver };
  });
}

const slot = (mid, peer, source = 'camera') => ({ mid, kind: source === 'microphone' ? 'audio' : 'video', peer, source: peer ? source : '' });

test('a stream is the same from before its first frame to after its last move', ({ cleanup }) => {
  const table = new SlotTable();
  const stream = table.stream('ada', 'camera');
  equal(stream.getTracks().length, 0);
  const [, four, five] = lanes(cleanup);
  table.bind([four, five]);
  equal(table.apply([slot('4', 'ada'), slot('5', '')]).map(({ peer, mid, live }) => [peer, mid, live]), [['ada', '4', true]]);
  same(stream.getTracks()[0], four.track);
  equal(table.apply([slot('4', 'ada'), slot('5', '')]), [], 'nothing changed');
  // The SFU moves her to another slot.
  equal(table.apply([slot('4', 'bob'), slot('5', 'ada')]).map(({ peer, mid, live }) => [peer, mid, live]), [['bob', '4', true], ['ada', '5', true]]);
  equal(stream.getTracks().map(({ id }) => id), [five.track.id]);
  // A new connection takes the old one's place.
  const [, newFour, newFive] = lanes(cleanup);
  table.bind([newFour, newFive]);
  same(table.stream('ada', 'camera'), stream);
  equal(stream.getTracks().map(({ id }) => id), [newFive.track.id]);
  equal(table.stream('bob', 'camera').getTracks().map(({ id }) => id), [newFour.track.id]);
  // She is not shown any more.
  equal(table.apply([slot('4', 'bob'), slot('5', '')]).map(({ peer, live }) => [peer, live]), [['ada', false]]);
  equal(stream.getTracks().length, 0);
  same(table.stream('ada', 'camera'), stream);
  table.forget('ada');
  ok(table.stream('ada', 'camera') !== stream, 'who left and came back is somebody new');
});

test('who leaves is gone before the table says so, and is told anew when they are back in the same slot', ({ cleanup }) => {
  const table = new SlotTable();
  const [three, four] = lanes(cleanup);
  table.bind([three, four]);
  const shown = [slot('3', 'ada', 'microphone'), slot('4', 'ada')];
  const tell = (changes) => changes.map(({ peer, source, live }) => `${peer} ${source} ${live}`).sort();
  table.apply(shown);
  const stream = table.stream('ada', 'camera');
  equal(tell(table.forget('ada')), ['ada camera false', 'ada microphone false']);
  equal(stream.getTracks(), []);
  table.bind([three, four]);
  equal(tell(table.apply(shown)), ['ada camera true', 'ada microphone true']);
  equal(table.stream('ada', 'camera').getTracks().map(({ id }) => id), [four.track.id]);
  table.forget('ada');
  equal(table.apply([slot('3', ''), slot('4', '')]), [], 'said once');
});

test('a picture that is held back is told, and told again when it comes back', ({ cleanup }) => {
  const table = new SlotTable();
  table.bind(lanes(cleanup));
  table.apply([slot('4', 'ada')]);
  const track = table.stream('ada', 'camera').getTracks()[0];
  const told = (slots) => table.apply(slots).map(({ peer, live, paused }) => [peer, live, paused]);
  equal(told([{ ...slot('4', 'ada'), paused: true }]), [['ada', true, true]]);
  equal(told([{ ...slot('4', 'ada'), paused: true }]), [], 'nothing changed');
  equal(told([{ ...slot('4', 'ada'), paused: false }]), [['ada', true, false]]);
  equal(told([slot('4', 'ada')]), [], 'absent is not paused');
  equal(told([slot('4', '')]), [['ada', false, false]]);
  equal(table.apply([{ ...slot('4', 'ada'), paused: true }])[0].stream.getTracks()[0].id, track.id, 'in the same stream');
});

test('a restart that changes nothing touches no stream', ({ cleanup }) => {
  const table = new SlotTable();
  const own = lanes(cleanup);
  table.bind(own);
  table.apply([slot('3', 'ada', 'microphone'), slot('4', 'ada')]);
  const stream = table.stream('ada', 'camera');
  let touched = 0;
  for (const type of ['addTrack', 'removeTrack']) {
    const method = stream[type];
    stream[type] = (...args) => (touched++, method.apply(stream, args));
  }
  table.bind(own);
  table.apply([slot('3', 'ada', 'microphone'), slot('4', 'ada')]);
  equal(touched, 0);
});

test('slots of m-lines that are not there yet are filled when they are', ({ cleanup }) => {
  const table = new SlotTable();
  equal(table.apply([slot('4', 'ada')]).length, 1);
  equal(table.stream('ada', 'camera').getTracks().length, 0);
  const [, four] = lanes(cleanup);
  table.bind([four]);
  same(table.stream('ada', 'camera').getTracks()[0], four.track);
});

const chromium = [
  'v=0', 'o=- 4611731400430051336 2 IN IP4 127.0.0.1', 'a=fingerprint:sha-256 ab:CD:01',
  'm=audio 9 UDP/TLS/RTP/SAVPF 111', 'a=mid:0', 'a=sendonly', 'a=ssrc:11 cname:x',
  'm=video 9 UDP/TLS/RTP/SAVPF 96 97', 'a=mid:1', 'a=sendonly', 'a=rid:q send', 'a=rid:h send', 'a=simulcast:send q;h',
  'm=video 9 UDP/TLS/RTP/SAVPF 96 97', 'a=mid:2', 'a=sendonly', 'a=ssrc-group:FID 31 32', 'a=ssrc:31 cname:x', 'a=ssrc:32 cname:x',
  'm=video 9 UDP/TLS/RTP/SAVPF 96 97', 'a=mid:3', 'a=recvonly', '',
].join('\r\n');
const sources = new Map([['0', 'microphone'], ['1', 'camera'], ['2', 'screen']]);

test('SDP is read for what is needed of it', () => {
  equal(sections(chromium).map(({ mid, kind }) => [mid, kind]), [['0', 'audio'], ['1', 'video'], ['2', 'video'], ['3', 'video']]);
  equal(sendRids(sections(chromium)[1]), ['q', 'h']);
  equal(ssrcs(sections(chromium)[2]), [{ ssrc: 31, rtxSsrc: 32 }]);
  equal([fingerprint(chromium), sessionId(chromium)], ['sha-256 AB:CD:01', '4611731400430051336']);
  equal([fingerprint('nonsense'), sessionId('')], ['', '']);
});

test('senders are named by mid and layer before their SSRCs are known, and by SSRC after', () => {
  const table = new SsrcTable();
  equal(table.senders(chromium, sources), [
    { mid: '0', source: 'microphone' }, { mid: '1', source: 'camera', rid: 'q' }, { mid: '1', source: 'camera', rid: 'h' }, { mid: '2', source: 'screen' },
  ]);
  table.learn(chromium, [{ mid: '1', rid: 'q', ssrc: 21, rtxSsrc: 22 }, { mid: '1', rid: 'h', ssrc: 23, rtxSsrc: 0 }]);
  const known = [
    { mid: '0', source: 'microphone', ssrc: 11 }, { mid: '1', source: 'camera', rid: 'q', ssrc: 21, rtxSsrc: 22 },
    { mid: '1', source: 'camera', rid: 'h', ssrc: 23 }, { mid: '2', source: 'screen', ssrc: 31, rtxSsrc: 32 },
  ];
  equal(table.senders(chromium, sources), known);
  table.learn(chromium, []); // A paused layer has no statistics; what is known stays known.
  equal(table.senders(chromium, sources), known);
  table.clear();
  equal(table.senders(chromium, sources)[0], { mid: '0', source: 'microphone' });
});

test('Firefox names every layer in its SDP', () => {
  const firefox = ['v=0', 'm=video 9 UDP/TLS/RTP/SAVPF 120 124', 'a=mid:1', 'a=rid:q send', 'a=rid:h send',
    'a=ssrc:21 cname:x', 'a=ssrc:22 cname:x', 'a=ssrc:23 cname:x', 'a=ssrc:24 cname:x', 'a=ssrc-group:FID 21 22', 'a=ssrc-group:FID 23 24', ''].join('\r\n');
  const table = new SsrcTable();
  table.learn(firefox, []);
  equal(table.senders(firefox, sources), [
    { mid: '1', source: 'camera', rid: 'q', ssrc: 21, rtxSsrc: 22 }, { mid: '1', source: 'camera', rid: 'h', ssrc: 23, rtxSsrc: 24 },
  ]);
});

test('an offer has its m-lines in the promised order and fits a message', async ({ cleanup }) => {
  const transport = new Transport(options);
  cleanup(() => transport.close());
  const { sdp } = await transport.offer({ iceRestart: false });
  const lines = sections(sdp);
  equal(lines.map(({ kind }) => kind), ['audio', 'video', 'video', ...Array(6).fill('audio'), ...Array(12).fill('video')]);
  equal([...transport.sources], [['0', 'microphone'], ['1', 'camera'], ['2', 'screen']]);
  equal(transport.lanes.map(({ mid }) => mid), lines.slice(3).map(({ mid }) => mid));
  equal(sendRids(lines[1]), ['q', 'h', 'f']);
  ok(!sdp.includes('m=application'), 'no data channels');
  // Firefox has H264 once its plugin is loaded, Chromium when it was built with it.
  ok(/a=rtpmap:\d+ VP8/.test(sdp) && !/profile-id=[^0]|packetization-mode=0|H265/.test(sdp), 'codecs of the cluster only');
  ok(/^m=video \d+ \S+ (\d+)[^]*a=rtpmap:\1 VP8/m.test(sdp), 'VP8 is preferred');
  ok(sdp.length < 96 << 10, `an offer of ${sdp.length} characters`);
  const largest = new Transport({ ...options, audioSlots: 15, videoSlots: 49 });
  cleanup(() => largest.close());
  const { length } = (await largest.offer({ iceRestart: false })).sdp;
  ok(length < 180 << 10, `the largest offer has ${length} characters`);
});

test('a browser is asked to turn what it sends, and turns what it receives', async ({ cleanup }) => {
  const transport = new Transport({ ...options, audioSlots: 0, videoSlots: 1 });
  cleanup(() => transport.close());
  const lines = sections((await transport.offer({ iceRestart: false })).sdp);
  const turns = RTCRtpReceiver.getCapabilities('video').headerExtensions.some(({ uri }) => uri.endsWith('video-orientation'));
  equal(lines.map(({ lines: attributes }) => attributes.some((line) => line.includes('video-orientation'))), [false, false, false, turns]);
});

test('the preferred codec stands first', async ({ cleanup }) => {
  for (const videoCodec of ['VP9', 'AV1']) {
    const transport = new Transport({ ...options, audioSlots: 0, videoSlots: 0, videoCodec });
    cleanup(() => transport.close());
    const { sdp } = await transport.offer({ iceRestart: false });
    ok(new RegExp(`^m=video \\d+ \\S+ (\\d+)[^]*a=rtpmap:\\1 ${videoCodec}`, 'm').test(sdp), videoCodec);
  }
});

test('a useless answer is refused: another connection behind the same certificate', async ({ cleanup }) => {
  const transport = new Transport({ ...options, audioSlots: 1, videoSlots: 1 });
  const certificate = await RTCPeerConnection.generateCertificate({ name: 'ECDSA', namedCurve: 'P-256' });
  const answer = async (sdp) => {
    const pc = new RTCPeerConnection({ certificates: [certificate] });
    cleanup(() => pc.close());
    await pc.setRemoteDescription({ type: 'offer', sdp });
    await pc.setLocalDescription();
    return pc.localDescription.sdp;
  };
  cleanup(() => transport.close());
  await transport.accept(await answer((await transport.offer({ iceRestart: false })).sdp));
  const restart = await transport.offer({ iceRestart: true });
  await restart.set();
  const again = await answer(restart.sdp);
  const error = await transport.accept(again).then(() => null, (thrown) => thrown);
  ok(error !== null && transport.broken, 'refused, and known to be broken');
});

test('a connection that is closed leaves no question for statistics open', async ({ cleanup }) => {
  const { getStats } = RTCPeerConnection.prototype;
  RTCPeerConnection.prototype.getStats = () => new Promise(() => {});
  cleanup(() => (RTCPeerConnection.prototype.getStats = getStats));
  const transport = new Transport({ ...options, audioSlots: 1, videoSlots: 1 });
  const asked = transport.stats();
  transport.close();
  equal([(await asked).received.size, (await transport.stats()).received.size], [0, 0]);
});

test('the offer of a move is made in advance, and made anew when it is out of date', async ({ cleanup }) => {
  const transport = new Transport({ ...options, audioSlots: 1, videoSlots: 1 });
  const other = new RTCPeerConnection();
  const { createOffer } = RTCPeerConnection.prototype;
  let made = 0;
  RTCPeerConnection.prototype.createOffer = function (...args) {
    made++;
    return createOffer.apply(this, args);
  };
  cleanup(() => {
    RTCPeerConnection.prototype.createOffer = createOffer;
    transport.close();
    other.close();
  });
  const userOf = (sdp) => /^a=ice-ufrag:(.*)/m.exec(sdp)[1];
  const negotiate = async (offer) => {
    await offer.set();
    await other.setRemoteDescription({ type: 'offer', sdp: offer.sdp });
    await other.setLocalDescription();
    await transport.accept(other.localDescription.sdp);
    return userOf(offer.sdp);
  };
  const user = await negotiate(await transport.offer({ iceRestart: false }));
  await transport.prepare();
  await transport.prepare();
  equal(made, 2, 'offers, one of them in advance');
  const early = await transport.offer({ iceRestart: false });
  equal([await negotiate(early), made], [user, 2], 'the one that was there, with the ICE user of before');
  ok(!early.sdp.includes('a=candidate'), 'no addresses are sent');
  await transport.prepare();
  await transport.setTrack('camera', null);
  equal(await negotiate(await transport.offer({ iceRestart: false })), user, 'one after the change');
  const restart = await transport.offer({ iceRestart: true });
  const second = await negotiate(restart);
  ok(second !== user && made === 5, 'an ICE restart takes the place of what was made in advance');
  const preparing = transport.prepare();
  const overtaken = await transport.offer({ iceRestart: false });
  await preparing;
  equal(await negotiate(overtaken), second, 'an offer while one is prepared');
});

test('a camera that is muted while its layers are fitted is not sent, and one that cannot be fitted is', async ({ cleanup }) => {
  const transport = new Transport(options);
  await (await transport.offer({ iceRestart: false })).set();
  const { setParameters, replaceTrack } = RTCRtpSender.prototype;
  const canvas = document.createElement('canvas');
  canvas.getContext('2d');
  const [track] = canvas.captureStream(5).getTracks();
  const given = [];
  let settle = (_) => {};
  RTCRtpSender.prototype.setParameters = () => new Promise((resolve, reject) => { settle = (well) => (well ? resolve({}) : reject(new Error('no layers'))); });
  RTCRtpSender.prototype.replaceTrack = async (one) => { given.push(one); };
  cleanup(() => {
    Object.assign(RTCRtpSender.prototype, { setParameters, replaceTrack });
    track.stop();
    transport.close();
  });
  const first = transport.setTrack('camera', track);
  await transport.setTrack('camera', null);
  settle(true);
  await first;
  equal(given, [null]);
  const second = transport.setTrack('camera', track);
  settle(false);
  await second;
  ok(given.length === 2 && given[1] === track && transport.sends('camera', track), 'wrong layers are better than no picture');
});

test('the layers of a camera follow the size of its pictures, however a browser tells it', async ({ cleanup }) => {
  const transport = new Transport(options);
  await (await transport.offer({ iceRestart: false })).set();
  cleanup(() => transport.close());
  const canvas = document.createElement('canvas');
  canvas.getContext('2d');
  const [track] = canvas.captureStream(5).getTracks();
  let settings = { width: 640, height: 360 };
  track.getSettings = () => settings;
  const { replaceTrack, setParameters } = RTCRtpSender.prototype;
  const set = [];
  RTCRtpSender.prototype.replaceTrack = async () => {};
  RTCRtpSender.prototype.setParameters = function (parameters) {
    set.push(parameters.encodings.filter(({ active }) => active).map(({ rid, scaleResolutionDownBy }) => rid + scaleResolutionDownBy).join(' '));
    return setParameters.call(this, parameters);
  };
  cleanup(() => {
    Object.assign(RTCRtpSender.prototype, { replaceTrack, setParameters });
    track.stop();
  });
  await transport.setTrack('camera', track);
  const [mid] = [...transport.sources].find(([, source]) => source === 'camera');
  const layer = (rid, more) => ({ mid, rid, frameWidth: 0, frameHeight: 0, sourceWidth: 0, sourceHeight: 0, ...more });
  const fit = (...outbound) => transport.fitCamera({ outbound });
  await fit(layer('q', { sourceWidth: 640, sourceHeight: 360 }));
  await fit();
  equal(set, ['q2 h1'], 'nothing is set again while the size stays');
  await fit(layer('q', { sourceWidth: 180, sourceHeight: 320 }));
  await fit(layer('q', { sourceWidth: 540, sourceHeight: 960 }));
  settings = { width: 320, height: 180 };
  await fit(layer('q', { frameWidth: 960, frameHeight: 540 }));
  settings = {};
  await fit();
  await fit(layer('q', { frameWidth: 160, frameHeight: 90 }));
  equal(set.slice(1), ['q1', 'q4 h2 f1', 'q1', 'q4 h2 f1', 'q2 h1'], 'by the source, by the track, and by what is encoded');
  await transport.setTrack('camera', null);
  await fit(layer('q', { sourceWidth: 320, sourceHeight: 180 }));
  equal(set.length, 6, 'nothing is set while the camera is off');
});

test('slots that nothing came on are named with their SSRCs', async ({ cleanup }) => {
  const transport = new Transport({ ...options, audioSlots: 1, videoSlots: 2 });
  const other = new RTCPeerConnection();
  cleanup(() => [transport, other].forEach((each) => each.close()));
  const { sdp, set } = await transport.offer({ iceRestart: false });
  await set();
  await other.setRemoteDescription({ type: 'offer', sdp });
  await other.setLocalDescription();
  const answer = other.localDescription.sdp.replace(/^a=ssrc.*\r\n/gm, ''); // Firefox names SSRCs also where it sends nothing.
  await transport.accept(answer.split(/^(?=m=)/m).map((section) => {
    const mid = /^a=mid:([45])/m.exec(section)?.[1];
    return section + (mid ? `a=ssrc-group:FID ${mid}1 ${mid}2\r\na=ssrc:${mid}1 cname:x\r\na=ssrc:${mid}2 cname:x\r\n` : '');
  }).join(''));
  await transport.prepare();
  equal(transport.unused(new Set(['4'])), [{ mid: '5', ssrc: 51, rtxSsrc: 52 }]);
});

const golden = ['answer', 'audience', 'bye', 'chat', 'connected', 'error', 'joined', 'muted-by', 'offer-rejected', 'peer-joined', 'peer-left', 'peer-updated', 'permissions', 'pong', 'presence', 'reactions', 'reoffer', 'restart', 'rests', 'resumed', 'room-updated', 'roster', 'roster-changes', 'slots', 'speakers', 'unmute-asked'];

test('every golden message of the server is understood, whole', async () => {
  for (const type of golden) {
    const response = await fetch(`/golden/${type}.json`);
    ok(response.ok, `golden ${type}`);
    const text = await response.text();
    equal(readServerMessage(text), JSON.parse(text), type);
  }
});

test('what is no message is ignored', () => {
  for (const text of ['', '{', 'null', '7', '[]', '{}', '{"type":"constructor"}', '{"type":"answer","id":"o1"}', '{"type":"slots","epoch":1,"slots":7}', '{"type":"peer-joined","peer":null,"epoch":1,"seq":1}', new Blob([]), undefined]) {
    equal(readServerMessage(text), null, String(text));
  }
  equal(readServerMessage('{"type":"slots","epoch":1,"slots":null}'), { type: 'slots', epoch: 1, slots: [], lacks: [] });
});

// A generator with a seed, so that what fails fails again (mulberry32).
function random(seed) {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let x = Math.imul(state ^ (state >>> 15), 1 | state);
    x = (x + Math.imul(x ^ (x >>> 7), 61 | x)) ^ x;
    return ((x ^ (x >>> 14)) >>> 0) % below;
  };
}

test('messages that were damaged anyhow are read as messages or ignored, and never throw', async () => {
  const texts = await Promise.all(golden.map(async (type) => (await fetch(`/golden/${type}.json`)).text()));
  const pieces = ['null', '[]', '{}', '-1', '1e999', '"', '}', ',', '\\u0000', '"__proto__"', 'true', '\ud800', '"type"'];
  const pick = random(1);
  let understood = 0;
  for (let i = 0; i < 20000; i++) {
    let text = texts[pick(texts.length)];
    for (let damages = 1 + pick(3); damages > 0; damages--) {
      const at = pick(text.length + 1);
      text = text.slice(0, at) + pieces[pick(pieces.length)] + text.slice(at + pick(8));
    }
    const message = readServerMessage(text);
    if (message === null) continue;
    understood++;
    ok(golden.includes(message.type), text);
    for (const list of ['roster', 'slots', 'speakers', 'mids', 'iceServers']) {
      if (JSON.parse(texts[golden.indexOf(message.type)])[list]) ok(Array.isArray(message[list] ?? (message.type === 'resumed' && list === 'iceServers' && [])), `${list} of ${text}`);
    }
    if (message.type === 'answer') sections(message.sdp).forEach((section) => [sendRids(section), ssrcs(section)]);
  }
  ok(understood > 100, `${understood} were understood`);
});
