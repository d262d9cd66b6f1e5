// A session's beginning, over sockets that answer each join with one message.

import { Session } from '/holdfast/session.js';
import { equal, ok, test } from './harness.js';

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
  const joined = { type: 'joined', peer: 'p', resume: 'r', room: 'blue', node: 'n', epoch: 1, seq: 1, roster: [], permissions: {} };
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
  const joined = { type: 'joined', peer: 'p', resume: 'r', room: 'blue', node: 'n', epoch: 1, seq: 1, roster: [], permissions: {} };
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
  equal(said, [{ type: 'join', token: 't-1', wait: true }, { type: 'join', token: 't-1', wait: true }, { type: 'leave', back: true }]);
});
