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
  session.leave();
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
