// Direct messages: once, in order, answered, and taken along to another signaling node.

import { Messages } from '/holdfast/messages.js';
import { Presence } from '/holdfast/presence.js';
import { equal, eventually, test } from './harness.js';

/** A connection that keeps what it is sent. */
function connection() {
  const sent = [];
  const messages = new Messages((message) => (sent.push(structuredClone(message)), true));
  const got = [];
  messages.addEventListener('message', ({ detail: { from, body } }) => got.push(`${from}: ${body}`));
  const said = () => sent.filter(({ type }) => type === 'message').map(({ seq, body }) => `${seq} ${body}`);
  const state = (seq, what, more = {}) =>
    messages.heard({ type: 'message-state', to: 'bob', stream: sent[0].stream, seq, state: what, ...more });
  return { messages, sent, got, said, state };
}

const hello = { type: 'message', from: 'ada', name: 'Ada', kind: 'text', body: 'hello', stream: 's', seq: 1, at: 5 };

test('what has no answer is said again on the next connection, in order and before anything new', async () => {
  const { messages, said, state } = connection();
  const became = [];
  for (const text of ['one', 'two', 'three']) messages.send('bob', text).then((delivery) => became.push(`${text} ${delivery}`));
  equal(said(), [], 'before there is a connection');
  messages.opened('anywhere');
  equal(said(), ['1 one', '2 two', '3 three']);
  state(1, 'accepted');
  state(2, 'delivered');
  await eventually(() => became.length === 1, 'an answer');
  messages.lost();
  messages.send('bob', 'four').then((delivery) => became.push(`four ${delivery}`));
  messages.opened('anywhere');
  equal(said().slice(3), ['1 one', '3 three', '4 four']);
  state(1, 'delivered');
  state(1, 'offline');
  state(3, 'offline');
  state(4, 'gave_up');
  await eventually(() => became.length === 4, 'all answers');
  equal(became, ['two delivered', 'one delivered', 'three offline', 'four gave_up']);
});

test('what comes again is dropped and acknowledged, a stream with one number', async ({ cleanup }) => {
  const { messages, sent, got } = connection();
  cleanup(() => messages.close());
  messages.opened('anywhere');
  for (const seq of [1, 2, 1, 2, 3]) messages.heard({ ...hello, seq, body: `no ${seq}` });
  messages.heard({ ...hello, stream: 'another life', body: 'again' });
  messages.heard({ ...hello, from: 'eve', body: 'not ada' });
  equal(got, ['ada: no 1', 'ada: no 2', 'ada: no 3', 'ada: again', 'eve: not ada']);
  await eventually(() => sent.length > 0, 'acknowledged');
  const upTo = [{ from: 'ada', stream: 's', seq: 3 }, { from: 'ada', stream: 'another life', seq: 1 }, { from: 'eve', stream: 's', seq: 1 }];
  equal(sent, [{ type: 'received', upTo }]);
  messages.heard({ ...hello, seq: 3 });
  await eventually(() => sent.length > 1, 'acknowledged again');
  equal([got.length, sent[1].upTo], [5, [upTo[0]]]);
});

test('what is refused says why: by the server, by the token, by its length, and when too much waits', async () => {
  const { messages, state } = connection();
  messages.opened('anywhere');
  const why = (promise) => promise.catch(({ code }) => code);
  const refused = why(messages.send('bob', 'x'));
  state(1, 'refused', { code: 'too_many_messages', message: 'Slow down.' });
  equal([await refused, await why(messages.send('bob', 'x'.repeat(9000)))], ['too_many_messages', 'message_too_long']);
  const waiting = Array.from({ length: 64 }, () => why(messages.send('bob', 'x')));
  equal(await why(messages.send('bob', 'x')), 'too_many_waiting');
  messages.close();
  equal([...new Set(await Promise.all(waiting))], ['left']);
  equal(await why(messages.send('bob', 'x')), 'left', 'after the end');
  messages.opened('');
  equal(await why(messages.send('bob', 'x')), 'not_messaged');
});

test('a message to several says for each what became of it, and tries again where it was too fast', async () => {
  const { messages, sent } = connection();
  messages.opened('anywhere');
  const all = messages.sendToEach(['ada', 'bob', 'cy', 'ada'], { x: 1 }, { kind: 'app' });
  equal([sent.length, sent[0].to, sent[0].kind], [1, ['ada', 'bob', 'cy'], 'app']);
  const says = (to, seq, state, code) => messages.heard({ type: 'message-state', to, stream: sent[0].stream, seq, state, code });
  says('ada', 1, 'delivered');
  messages.lost();
  messages.opened('anywhere');
  equal(sent[1].to, ['bob', 'cy'], 'who has answered is not written to again');
  says('bob', 1, 'refused', 'too_many_messages');
  says('cy', 1, 'offline');
  await eventually(() => sent.length === 3, 'said again');
  equal([sent[2].seq, sent[2].to, sent[2].body], [2, ['bob'], { x: 1 }]);
  says('bob', 2, 'gave_up');
  equal(Object.fromEntries(await all), { ada: 'delivered', cy: 'offline', bob: 'gave_up' });
  const refused = await messages.sendToEach(['ada'], 'x'.repeat(9000));
  equal([refused.get('ada').code, (await messages.sendToEach([], 1)).size], ['message_too_long', 0]);
});

test('a page without a call sends and gets messages', async ({ cleanup }) => {
  const heard = [];
  /** @type {any} */
  let socket;
  const reply = (message) => socket.onmessage({ data: JSON.stringify(message) });
  class FakeSocket {
    constructor() {
      socket = this;
      queueMicrotask(() => this.onopen?.());
    }
    send(text) {
      const message = JSON.parse(text);
      heard.push(message);
      if (message.type === 'connect') queueMicrotask(() => reply({ type: 'connected', protocol: 1, identity: 'me', watch: false, message: true }));
      if (message.type === 'message') queueMicrotask(() => reply({ ...message, type: 'message-state', to: 'bob', state: 'delivered' }));
    }
    close() {}
  }
  const presence = new Presence({ WebSocket: /** @type {any} */ (FakeSocket) });
  cleanup(() => presence.close());
  const got = [];
  presence.messages.addEventListener('message', ({ detail }) => got.push(detail.body.room));
  await presence.connect({ url: 'http://test', token: 't' });
  equal(await presence.messages.send('bob', { room: 'lobby' }, { kind: 'ring' }), 'delivered');
  equal([heard[1].kind, heard[1].to, heard[1].body], ['ring', ['bob'], { room: 'lobby' }]);
  reply({ ...hello, kind: 'ring', body: { room: 'garden' } });
  equal(got, ['garden']);
});
