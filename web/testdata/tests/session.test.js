// A session's beginning, over sockets that answer each join with one message.

import { Presence } from '/holdfast/presence.js';
import { Session } from '/holdfast/session.js';
import { Socket } from '/holdfast/socket.js';
import { equal, eventually, ok, once, test } from './harness.js';

const joined = { type: 'joined', peer: 'p', resume: 'r', room: 'blue', node: 'n', epoch: 1, seq: 1, roster: [], permissions: {} };

/** Sockets that open at once; a case says what comes of each. */
function sockets() {
  /** @type {any[]} */
  const all = [];
  class Maker {
    /** @type {any[]} */
    said = [];
    closed = false;

    constructor() {
      all.push(this);
      queueMicrotask(() => /** @type {any} */ (this).onopen?.());
    }

    /** @param {string} text */
    send(text) {
      this.said.push(JSON.parse(text));
    }

    /** @param {object} message */
    say(message) {
      /** @type {any} */ (this).onmessage?.({ data: JSON.stringify(message) });
    }

    /** The signaling node dies. */
    cut() {
      /** @type {any} */ (this).onclose?.({ code: 1006 });
    }

    close() {
      this.closed = true;
    }
  }
  return { all, Maker: /** @type {any} */ (Maker) };
}

/** Timers of 6 s to 30 s go a hundred times faster: those are limits of a socket. */
function hurry(/** @type {{cleanup: (f: () => void) => void}} */ { cleanup }) {
  const genuine = globalThis.setTimeout;
  Object.assign(globalThis, { setTimeout: (/** @type {() => void} */ f, ms = 0) => genuine(f, ms >= 6000 && ms <= 30000 ? ms / 100 : ms) });
  cleanup(() => Object.assign(globalThis, { setTimeout: genuine }));
}

test('a socket that opens and is not answered is given up, of a join and of a resume', async (t) => {
  hurry(t);
  const { all, Maker } = sockets();
  const session = new Session({ url: 'ws://test/ws', token: 't', joinLimitMs: 60000, WebSocket: Maker }, () => ({ epoch: 0, seq: 0 }));
  t.cleanup(() => session.leave(false));
  session.start();
  await eventually(() => all.length === 2 && all[1].said.length === 1, 'another socket joins', 20000);
  equal([all[0].said[0].type, all[0].closed, all[1].said[0].type], ['join', true, 'join']);
  all[1].say(joined);
  all[1].cut();
  await eventually(() => all.length === 4 && all[3].said.length === 1, 'a second one resumes', 20000);
  equal([all[2].said[0].type, all[2].closed, all[3].said[0].type], ['resume', true, 'resume']);
  const resumed = once(session, 'resumed');
  all[3].say({ type: 'resumed', resume: 'r2', node: 'n', epoch: 1, seq: 1, roster: [], slots: [], mediaAlive: true });
  await resumed;
});

test('who waits in line is not given up, however long the line says nothing', async (t) => {
  hurry(t);
  const { all, Maker } = sockets();
  const session = new Session({ url: 'ws://test/ws', token: 't', wait: true, joinLimitMs: 60000, WebSocket: Maker }, () => ({ epoch: 0, seq: 0 }));
  t.cleanup(() => session.leave(false));
  session.start();
  await eventually(() => all[0].said.length === 1, 'the join');
  all[0].say({ type: 'waiting', position: 1, reason: 'full' });
  let late = false;
  setTimeout(() => { late = true; }, 30000); // Longer than the limit, whatever the machine does.
  await eventually(() => late, 'longer than an answer may take');
  equal([all.length, all[0].closed], [1, false]);
});

test('a connection in no room that is not answered is given up', async (t) => {
  hurry(t);
  const { all, Maker } = sockets();
  const presence = new Presence({ WebSocket: Maker });
  t.cleanup(() => presence.close());
  const connected = presence.connect({ url: 'http://test', token: 't' });
  await eventually(() => all.length === 2 && all[1].said.length === 1, 'another socket asks', 20000);
  equal([all[0].closed, all[1].said[0].type], [true, 'connect']);
  all[1].say({ type: 'connected', protocol: 1, identity: 'me', watch: true });
  await connected;
});

/** Tokens that are asked for and given later. */
function lateTokens() {
  /** @type {{resolve: (token: string) => void, reject: (error: Error) => void}[]} */
  const asked = [];
  return { asked, token: () => new Promise((resolve, reject) => asked.push({ resolve, reject })) };
}

test('a token that comes after the socket it was asked for joins nobody: the one asked for since does, once', async (t) => {
  const { all, Maker } = sockets();
  const { asked, token } = lateTokens();
  const session = new Session({ url: 'ws://test/ws', token: /** @type {any} */ (token), WebSocket: Maker }, () => ({ epoch: 0, seq: 0 }));
  t.cleanup(() => session.leave(false));
  session.start();
  await eventually(() => asked.length === 1, 'a token is wanted');
  all[0].cut();
  await eventually(() => asked.length === 2, 'another is wanted');
  asked[0].resolve('old');
  asked[1].resolve('new');
  await eventually(() => all[1].said.length > 0, 'the join');
  equal(all.flatMap(({ said }) => said), [{ type: 'join', token: 'new', rosterChanges: true, places: true }]);
});

test('a token that cannot be fetched when the session has expired is told, and asked for again', async (t) => {
  const { all, Maker } = sockets();
  const { asked, token } = lateTokens();
  const session = new Session({ url: 'ws://test/ws', token: /** @type {any} */ (token), WebSocket: Maker }, () => ({ epoch: 0, seq: 0 }));
  t.cleanup(() => session.leave(false));
  /** @type {string[]} */
  const told = [];
  session.addEventListener('error', (event) => told.push(/** @type {CustomEvent} */ (event).detail.code));
  session.start();
  await eventually(() => asked.length === 1, 'a token is wanted');
  asked[0].resolve('first');
  await eventually(() => all[0].said.length === 1, 'the join');
  all[0].say(joined);
  all[0].cut();
  await eventually(() => all[1]?.said.length === 1, 'the resume');
  all[1].say({ type: 'error', code: 'resume_expired', message: 'Join again.', retryable: false });
  await eventually(() => asked.length === 2, 'another token is wanted');
  asked[1].reject(new Error('staged'));
  await eventually(() => asked.length === 3, 'and another');
  equal(told, ['no_token']);
  asked[2].resolve('third');
  await eventually(() => all.at(-1).said.length === 1, 'a join');
  equal(all.at(-1).said, [{ type: 'join', token: 'third', rosterChanges: true, places: true }]);
});

/** @param {() => object} answer what the server says to a join */
function socketsThatAnswer(answer) {
  return class {
    constructor() {
      queueMicrotask(() => this.onopen?.());
    }

    send() {
      queueMicrotask(() => this.onmessage?.({ data: JSON.stringify(answer()) }));
    }

    close() {}
  };
}

/** How a session with a limit of 300 ms ends that is refused for 1.5 s, in steps of 50 ms, and then let in. */
async function refusedAtFirst(code) {
  const began = performance.now();
  const refusal = { type: 'error', code, message: 'Try again in a moment.', retryable: true, retryAfterMs: 50 };
  const Maker = socketsThatAnswer(() => (performance.now() - began > 1500 ? joined : refusal));
  const session = new Session({ url: 'ws://test/ws', token: 't', joinLimitMs: 300, WebSocket: /** @type {any} */ (Maker) }, () => ({ epoch: 0, seq: 0 }));
  let told = 0;
  session.addEventListener('error', () => told++);
  const end = new Promise((resolve) => {
    for (const type of ['joined', 'ended']) session.addEventListener(type, (event) => resolve([type, /** @type {CustomEvent} */ (event).detail?.code]));
  });
  session.start();
  const how = await end;
  session.leave(false);
  return { how, told };
}

test('whoever waits for the store gets in, however long it is away, and is told meanwhile', async () => {
  const { how, told } = await refusedAtFirst('store_unavailable');
  equal(how[0], 'joined');
  ok(told > 3, `told ${told} times`);
});

test('another refusal for now is given up when the limit has passed', async () => {
  equal((await refusedAtFirst('no_capacity')).how, ['ended', 'no_capacity']);
});

test('who waits in line is told the place, finds it again after a loss by the same token, and is in at last', async () => {
  /** @type {any[]} */
  const said = [];
  class Maker {
    constructor() {
      queueMicrotask(() => /** @type {any} */ (this).onopen?.());
    }

    /** @param {string} text */
    send(text) {
      said.push(JSON.parse(text));
      const say = (/** @type {object} */ message) => /** @type {any} */ (this).onmessage?.({ data: JSON.stringify(message) });
      setTimeout(() => say({ type: 'waiting', position: 3 - said.length, reason: 'full' }));
      if (said.length === 1) setTimeout(() => /** @type {any} */ (this).onclose?.(), 600);
      else setTimeout(() => say(joined), 600);
    }

    close() {}
  }
  let asked = 0;
  const token = () => `t-${++asked}`;
  const session = new Session({ url: 'ws://test/ws', token, wait: true, joinLimitMs: 300, WebSocket: /** @type {any} */ (Maker) }, () => ({ epoch: 0, seq: 0 }));
  /** @type {number[]} */
  const places = [];
  session.addEventListener('waiting', (event) => places.push(/** @type {CustomEvent} */ (event).detail.position));
  const end = new Promise((resolve) => {
    for (const type of ['joined', 'ended']) session.addEventListener(type, () => resolve(type));
  });
  session.start();
  equal(await end, 'joined');
  session.leave(true);
  equal(places, [2, 1]);
  equal(said, [{ type: 'join', token: 't-1', rosterChanges: true, places: true, wait: true }, { type: 'join', token: 't-1', rosterChanges: true, places: true, wait: true }, { type: 'leave', back: true }]);
});

/**
 * Timers of a hidden tab: whatever has come due runs when the tab wakes up, a repeated one once.
 * @param {{cleanup: (f: () => void) => void}} t
 */
function hiddenTab({ cleanup }) {
  const { setTimeout, clearTimeout, setInterval, clearInterval } = globalThis;
  const genuineNow = performance.now;
  let [now, made] = [1000, 0];
  /** @type {Map<number, {f: () => void, due: number, everyMs: number}>} */
  const timers = new Map();
  const add = (/** @type {() => void} */ f, ms = 0, everyMs = 0) => (timers.set(++made, { f, due: now + ms, everyMs }), made);
  const remove = (/** @type {number} */ id) => timers.delete(id);
  Object.assign(globalThis, { setTimeout: (/** @type {() => void} */ f, ms = 0) => add(f, ms), clearTimeout: remove, setInterval: (/** @type {() => void} */ f, ms = 0) => add(f, ms, ms), clearInterval: remove });
  performance.now = () => now;
  const restore = () => {
    Object.assign(globalThis, { setTimeout, clearTimeout, setInterval, clearInterval });
    performance.now = genuineNow;
  };
  cleanup(restore);
  const idle = async () => {
    for (let i = 0; i < 10; i++) await null;
  };
  const wakeUp = async (/** @type {number} */ afterMs) => {
    now += afterMs;
    for (const [id, timer] of [...timers].filter(([, { due }]) => due <= now).sort(([, a], [, b]) => a.due - b.due)) {
      if (!timers.delete(id)) continue; // An earlier one has cleared it.
      if (timer.everyMs > 0) timers.set(id, { ...timer, due: now + timer.everyMs });
      timer.f();
    }
    await idle();
  };
  return { wakeUp, idle, restore };
}

/** A socket in use, in a tab that wakes up once a minute. */
async function inUse(/** @type {{cleanup: (f: () => void) => void}} */ t) {
  const tab = hiddenTab(t);
  const { all, Maker } = sockets();
  const socket = new Socket('ws://test/ws', Maker);
  t.cleanup(() => socket.close());
  let lost = 0;
  socket.addEventListener('lost', () => lost++);
  socket.open();
  await tab.idle();
  all[0].say({ type: 'pong', t: 0 });
  socket.settle();
  return { ...tab, all, lost: () => lost };
}

test('a socket whose pings are answered is kept, however seldom a hidden tab sends one', async (t) => {
  const { wakeUp, all, lost, restore } = await inUse(t);
  for (let minute = 0; minute < 5; minute++) {
    await wakeUp(60_000);
    all[0].say({ type: 'pong', t: 1 });
  }
  restore();
  equal([lost(), all.length, all[0].said.map(({ type }) => type)], [0, 1, ['ping', 'ping', 'ping', 'ping', 'ping']]);
});

test('a socket whose ping is not answered is lost, in a hidden tab and in another', async (t) => {
  const hidden = await inUse(t);
  await hidden.wakeUp(60_000);
  equal(hidden.lost(), 0, 'asked');
  await hidden.wakeUp(60_000);
  hidden.restore();
  equal([hidden.lost(), hidden.all[0].closed], [1, true]);
  const shown = await inUse(t);
  for (let tick = 1; tick <= 3; tick++) {
    equal(shown.lost(), 0, `tick ${tick}`);
    await shown.wakeUp(4000);
  }
  shown.restore();
  equal(shown.lost(), 1);
});

test('whoever waits in line in a hidden tab has the time for a new socket', async (t) => {
  const { wakeUp, idle, restore } = hiddenTab(t);
  const { all, Maker } = sockets();
  const session = new Session({ url: 'ws://test/ws', token: 't', wait: true, WebSocket: Maker }, () => ({ epoch: 0, seq: 0 }));
  t.cleanup(() => session.leave(false));
  let ended = 0;
  session.addEventListener('ended', () => ended++);
  session.start();
  await idle();
  all[0].say({ type: 'waiting', position: 2, reason: 'full' });
  all[0].cut();
  await wakeUp(60_000);
  equal([all.length, all[1]?.said[0]?.type, ended], [2, 'join', 0]);
  all[1].say({ type: 'waiting', position: 1, reason: 'full' });
  await wakeUp(60_000);
  equal(ended, 0, 'in line again');
  all[1].cut();
  await wakeUp(60_000);
  await wakeUp(15_000);
  restore();
  equal(ended, 1, 'a join that is not answered is given up');
});
