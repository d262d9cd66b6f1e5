// What the library or the server refuses: every promise settles, wrong arguments fail at once, and what was refused is not sent again.

import { Call, Presence } from '/holdfast/index.js';
import { equal, eventually, ok, once, test } from './harness.js';

/** Signaling nodes that let everybody in, keep what they hear, and answer nothing else unasked. */
function cluster() {
  const nodes = { sockets: [], heard: [], permissions: { publish: true, subscribe: true, chat: true, rename: true, moderate: true, watch: true, message: 'anywhere' } };
  nodes.WebSocket = class {
    constructor() {
      nodes.sockets.push(this);
      queueMicrotask(() => this.onopen?.());
    }
    send(text) {
      const message = JSON.parse(text);
      const place = { node: 'n', epoch: 1, seq: 1, roster: [], iceServers: [] };
      if (message.type !== 'ping') nodes.heard.push(message);
      if (message.type === 'join') nodes.say({ type: 'joined', protocol: 1, room: 'r', peer: 'me', identity: 'ada@example.org', name: 'Ada', resume: 'one', ...place, permissions: nodes.permissions });
      if (message.type === 'resume') nodes.say({ type: 'resumed', ...place, slots: [], resume: 'two', mediaAlive: true });
      if (message.type === 'connect') nodes.say({ type: 'connected', protocol: 1, identity: 'me', watch: true, message: true });
    }
    close() {}
  };
  nodes.say = (message) => queueMicrotask(() => nodes.sockets.at(-1).onmessage?.({ data: JSON.stringify(message) }));
  nodes.cut = () => nodes.sockets.at(-1).onclose?.({ code: 1006 });
  nodes.of = (type) => nodes.heard.filter((message) => message.type === type);
  /** Refuses the last message of a type, as signaling nodes do. */
  nodes.refuse = (type, code = 'bad_message', more = {}) => nodes.say({ type: 'error', code, message: 'No.', retryable: false, request: nodes.of(type).at(-1).request, ...more });
  return nodes;
}

async function call({ cleanup }) {
  const nodes = cluster();
  const one = new Call({ WebSocket: nodes.WebSocket, audioSlots: 0, videoSlots: 0 });
  const errors = [];
  one.addEventListener('error', ({ detail }) => errors.push(`${detail.code} ${detail.about}`));
  cleanup(() => one.leave());
  await one.join({ url: location.origin, token: 't' });
  return { nodes, call: one, errors };
}

const why = (promise) => promise.then((value) => ({ value }), (error) => error.code ?? String(error));

/** @param {() => unknown} act */
function thrown(act) {
  try {
    act();
    return '';
  } catch (error) {
    return error.code ?? String(error);
  }
}

test('wrong arguments of a join are refused at once, and the call can be joined then', async ({ cleanup }) => {
  const nodes = cluster();
  const one = new Call({ WebSocket: nodes.WebSocket });
  cleanup(() => one.leave());
  const [url, token] = [location.origin, 't'];
  for (const bad of [undefined, {}, { token }, { url: '', token }, { url: null, token }, { url: 'nope', token }, { url: { href: 5 }, token }, { url: 5, token }, { url: 'ftp://x', token }, { url: `${url}/foo`, token }, { url: 'https://', token }]) {
    equal(await why(one.join(bad)), 'bad_url', JSON.stringify(bad));
  }
  for (const bad of [undefined, '', ' ', null, 5, {}]) equal(await why(one.join({ url, token: bad })), 'bad_token', `token ${bad}`);
  for (const bad of [{ room: 5 }, { name: {} }, { name: 'x'.repeat(257) }, { wait: 'yes' }, { stream: {} }, { joinLimitMs: 0 }, { joinLimitMs: Infinity }]) {
    equal(await why(one.join({ url, token, ...bad })), 'bad_argument', JSON.stringify(bad));
  }
  equal([one.state, nodes.sockets.length], ['idle', 0], 'nothing was begun');
  await one.join({ url: `${url}/`, token });
  equal([one.identity, await why(one.join({ url, token }))], ['ada@example.org', 'bad_state']);

  for (const bad of [undefined, '', 7]) {
    const fetching = new Call({ WebSocket: cluster().WebSocket });
    equal([await why(fetching.join({ url, token: () => bad })), fetching.state], ['bad_token', 'left'], `a function that gives ${bad}`);
    const presence = new Presence({ WebSocket: cluster().WebSocket });
    equal([await why(presence.connect({ url, token: () => bad })), presence.state], ['bad_token', 'closed'], `a function that gives ${bad}`);
  }
  const presence = new Presence({ WebSocket: cluster().WebSocket });
  equal([await why(presence.connect({})), await why(presence.connect({ url })), await why(presence.connect({ url, token, connectLimitMs: -1 })), presence.state], ['bad_url', 'bad_token', 'bad_argument', 'idle']);
});

test('an address may have a prefix', async () => {
  for (const [url, want] of [['https://host', 'wss://host/ws'], ['https://host/call/', 'wss://host/call/ws'], ['ws://host/call/ws', 'ws://host/call/ws'], [new URL('http://host:1/?a=1#b'), 'ws://host:1/ws?a=1'], [Object.assign(document.createElement('a'), { href: 'https://host/' }), 'wss://host/ws']]) {
    const asked = [];
    const one = new Call({ WebSocket: class {
      constructor(address) {
        asked.push(address);
      }
      close() {}
    } });
    const joining = why(one.join({ url, token: 't' }));
    one.leave();
    equal([asked, await joining], [[want], 'left']);
  }
});

test('wrong arguments of every other method fail at once with a code, and nothing is sent', async (t) => {
  const { nodes, call: one } = await call(t);
  const before = nodes.heard.length;
  const { messages, moderation } = one;
  const picture = document.createElement('canvas').captureStream().getTracks()[0];
  const promises = {
    'no kind': messages.send('grace', { a: 1 }), 'no body': messages.send('grace'), 'null': messages.send('grace', null, { kind: 'app' }), 'a kind': messages.send('grace', 'x', { kind: 'notice' }),
    'nobody': messages.send('', 'x'), 'no text': messages.send(5, 'x'), 'half a character': messages.send('\ud800', 'x'), 'a BigInt': messages.send('grace', 5n, { kind: 'app' }), 'no list': messages.sendToEach('grace', 'x'),
    'mic': one.setMuted('mic', true), 'no boolean': one.setMuted('camera'), 'no source': one.replaceTrack('mic', picture), 'no kind of track': one.replaceTrack('microphone', picture), 'no track': one.replaceTrack('camera'),
  };
  for (const [what, promise] of Object.entries(promises)) equal(await why(promise), 'bad_argument', what);
  equal((await messages.sendToEach(['grace'], { a: 1 })).get('grace').code, 'bad_argument');
  equal((await one.sendToAll('x', { kind: 'nothing' })).size, 0, 'nobody is there');
  const acts = [
    () => one.say(5), () => one.rename(''), () => one.rename('x'.repeat(257)), () => one.watch('grace'), () => one.watch([5]), () => one.isMuted('mic'), () => one.mayPublish('mic'), () => one.stream('p', 'mic'), () => one.stream('', 'camera'),
    () => one.setView({}), () => one.setView([{}]), () => one.setView([{ peer: 'p', source: 'camera', width: NaN, height: 1 }]), () => one.setUnreadable('p', 'mic', true),
    () => moderation.act('dance'), () => moderation.act('remove'), () => moderation.act('mute', 'p', 'mic'), () => moderation.raiseHand('yes'), () => moderation.react('x'),
    () => moderation.door.set({ cap: 1.5 }), () => moderation.door.set({ closed: 1 }), () => moderation.door.letIn(''), () => moderation.door.turnAway(5),
    () => new Call({ audioSlots: -1 }), () => new Call({ videoSlots: 65 }), () => new Call({ videoCodec: 'H265' }), () => new Call({ createTransform: {} }), () => new Call({ simulcast: 'no' }),
  ];
  for (const act of acts) equal(thrown(act), 'bad_argument', String(act));
  equal([thrown(() => one.say('x'.repeat(2001))), thrown(() => one.watch(Array.from({ length: 501 }, (_, n) => `u${n}`)))], ['text_too_long', 'too_many_watched']);
  equal(one.say('🦊'.repeat(2000)).state, 'sending', 'characters, not bytes');
  one.setView([{ peer: 'p', source: 'camera', width: 640.4, height: 1e9 }]);
  equal(nodes.of('view').at(-1).wants, [{ peer: 'p', source: 'camera', width: 640, height: 32768 }], 'whole pixels');
  one.setView(Array.from({ length: 600 }, () => ({ peer: 'p', source: 'camera', width: 1, height: 1 })));
  equal(nodes.of('view').at(-1).wants.length, 512);
  equal(nodes.heard.slice(before).filter(({ type }) => !['view', 'chat', 'offer', 'mute'].includes(type)), [], 'nothing else was sent');
});

test('what the server refuses is told with what it is about, and is not sent again on the next connection', async (t) => {
  const { nodes, call: one, errors } = await call(t);
  const letter = why(one.messages.send('grace', 'hello'));
  const lines = [];
  one.addEventListener('chat', ({ detail }) => lines.push(detail.line.state));
  one.say('hello');
  one.rename('Grace');
  one.watch(['grace']);
  one.setView([{ peer: 'p', source: 'camera', width: 1, height: 1 }]);
  await one.setMuted('camera', false);
  const types = ['message', 'chat', 'rename', 'watch', 'view'];
  const named = nodes.heard.filter(({ type }) => type !== 'join');
  equal([new Set(named.map(({ request }) => request)).size, named.every(({ request }) => typeof request === 'string')], [named.length, true], 'each has an id of its own');
  for (const type of types) nodes.refuse(type);
  equal(await letter, 'bad_message');
  await eventually(() => errors.length === types.length, 'all errors');
  equal([errors, lines], [types.map((type) => `bad_message ${type}`), ['sending', 'failed']]);
  const before = nodes.heard.length;
  nodes.cut();
  await eventually(() => nodes.of('resume').length === 1 && nodes.heard.slice(before).some(({ type }) => type === 'mute'), 'resumed');
  one.moderation.react('🎉');
  equal(nodes.heard.slice(before).filter(({ type }) => types.includes(type)), [], 'none of it again');
  // Another one is a new request.
  one.watch(['grace', 'alan']);
  await eventually(() => nodes.of('watch').length === 2, 'another list');
});

test('what may be tried again is kept, and an error that names no message is told as before', async (t) => {
  const { nodes, call: one, errors } = await call(t);
  one.rename('Grace');
  one.say('hello');
  nodes.refuse('rename', 'too_many_messages', { retryable: true });
  nodes.refuse('chat', 'too_many_messages', { retryable: true });
  nodes.say({ type: 'error', code: 'bad_message', message: 'No.', retryable: false });
  nodes.say({ type: 'error', code: 'bad_message', message: 'No.', retryable: false, request: 'of nobody' });
  await eventually(() => errors.length === 4, 'all errors');
  equal([errors, one.chat[0].state], [['too_many_messages rename', 'too_many_messages chat', 'bad_message ', 'bad_message '], 'sending']);
  nodes.cut();
  await eventually(() => nodes.of('rename').length === 2, 'said again');
});

test('an offer that is refused as a message fails as a rejected one', async (t) => {
  const { nodes } = await call(t);
  await eventually(() => nodes.of('offer').length === 1, 'an offer');
  nodes.refuse('offer');
  await eventually(() => nodes.of('offer').length === 2, 'the next attempt');
});

test('a message without an outcome settles: it may have arrived, or it was never sent', async ({ cleanup }) => {
  const genuine = globalThis.setTimeout;
  const minutes = [];
  globalThis.setTimeout = (f, ms, ...rest) => (ms === 60000 ? minutes.push(f) : genuine(f, ms, ...rest));
  cleanup(() => (globalThis.setTimeout = genuine));
  const nodes = cluster();
  const presence = new Presence({ WebSocket: nodes.WebSocket });
  cleanup(() => presence.close());
  const early = why(presence.messages.send('grace', 'before there is a connection'));
  await eventually(() => minutes.length === 1, 'a limit');
  minutes.shift()();
  equal(await early, 'unreachable');
  await presence.connect({ url: location.origin, token: 't' });
  equal(nodes.of('message'), [], 'it is not sent after all');
  const late = why(presence.messages.send('grace', 'hello'));
  const each = presence.messages.sendToEach(['grace', 'alan'], 'hello');
  await eventually(() => minutes.length === 2, 'their limits');
  const [, second] = nodes.of('message');
  nodes.say({ type: 'message-state', to: 'alan', stream: second.stream, seq: second.seq, state: 'delivered' });
  await new Promise((resolve) => queueMicrotask(() => genuine(resolve)));
  for (const end of minutes) end();
  equal([await late, [...await each]], [{ value: 'gave_up' }, [['alan', 'delivered'], ['grace', 'gave_up']]]);
  const refused = why(presence.messages.send('grace', 'x'));
  await eventually(() => nodes.of('message').length === 3, 'sent');
  nodes.refuse('message', 'too_many_messages', { retryable: true });
  equal(await refused, 'too_many_messages');
});

test('a connection that never opens is given up after the limit', async () => {
  const presence = new Presence({ WebSocket: class {
    close() {}
  } });
  const closed = once(presence, 'closed');
  equal([await why(presence.connect({ url: location.origin, token: 't', connectLimitMs: 50 })), (await closed).code, presence.state], ['unreachable', 'unreachable', 'closed']);
});

test('what waits for the browser ends when the call does', async ({ cleanup }) => {
  const { replaceTrack } = RTCRtpSender.prototype;
  cleanup(() => (RTCRtpSender.prototype.replaceTrack = replaceTrack));
  const { call: one } = await call({ cleanup });
  await eventually(async () => (await one.stats()).offersSent > 0, 'a connection');
  RTCRtpSender.prototype.replaceTrack = () => new Promise(() => {});
  const [muting, replacing] = [one.setMuted('microphone', true), one.replaceTrack('camera', null)];
  one.leave();
  ok(await Promise.all([muting, replacing]), 'settled');
});

test('an address whose path leads nowhere is refused at the first try', async ({ cleanup }) => {
  const Failing = class {
    constructor() {
      setTimeout(() => this.onclose?.({ code: 1006 }));
    }
    close() {}
  };
  const url = `${location.origin}/nowhere/`;
  const join = (more) => why(new Call({ WebSocket: Failing }).join({ token: 't', url, ...more }));
  equal([await join({}), await why(new Presence({ WebSocket: Failing }).connect({ url, token: 't' }))], ['bad_url', 'bad_url']);
  const { fetch } = globalThis;
  cleanup(() => (globalThis.fetch = fetch));
  const asked = [];
  for (const answer of [async () => new Response('', { status: 503 }), async () => Promise.reject(new TypeError('of another origin'))]) {
    globalThis.fetch = (address) => (asked.push(String(address)), answer());
    equal(await join({ joinLimitMs: 300 }), 'unreachable');
  }
  equal(await join({ joinLimitMs: 300, url: location.origin }), 'unreachable', 'at the root');
  equal(asked, [`${url}ws`, `${url}ws`], 'asked once');
});
