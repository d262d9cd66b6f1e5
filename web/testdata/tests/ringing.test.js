// Rings: their states on both sides, whatever order and however often what is said of them comes.

import { Call } from '/holdfast/call.js';
import { Reachable } from '/page/reachable.js';
import { Ringing } from '/page/ringing.js';
import { meant } from '/page/met.js';
import { identityInDev } from '/page/tokens.js';
import { equal, eventually, ok, test } from './harness.js';

/** A page's rings on a connection that keeps what it sends. */
function page(options = {}) {
  const ringing = new Ringing(options);
  const [states, missed, sent] = [[], [], []];
  const connection = () => Object.assign(new EventTarget(), {
    send: (to, body, { kind }) => new Promise((resolve, reject) => sent.push({ to, kind, body, resolve, reject })),
  });
  const messages = connection();
  ringing.follow(messages);
  ringing.addEventListener('outgoing', ({ detail: { ring } }) => states.push(ring.state));
  ringing.addEventListener('missed', ({ detail: { ring } }) => missed.push(ring.name));
  const hear = (kind, body, from = 'ada') => messages.dispatchEvent(new CustomEvent('message', { detail: { from, name: from.toUpperCase(), kind, body, at: 1 } }));
  return { ringing, states, missed, sent, hear, connection };
}

test('a ring is calling, ringing and answered, and every device of who was rung hears the end', async () => {
  const { ringing, states, sent, hear } = page();
  ringing.ring('grace', 'Grace', 'r');
  ringing.ring('grace', 'Grace', 'r');
  const { id } = sent[0].body;
  equal([sent.length, sent[0].to, sent[0].kind, sent[0].body.room], [1, 'grace', 'ring', 'r']);
  sent[0].resolve('delivered');
  await eventually(() => states.length === 2, 'delivered');
  hear('answer', { id, accepted: true }, 'eve'); // Was not rung.
  hear('answer', { id, accepted: false }, 'grace');
  hear('answer', { id, accepted: true }, 'grace');
  equal(states, ['calling', 'ringing', 'declined']);
  equal([sent.length, sent[1].body], [2, { id, over: 'answered' }]);
});

test('who is not online, or not reached, is told of', async () => {
  for (const [delivery, state] of [['offline', 'offline'], ['gave_up', 'unreached']]) {
    const { ringing, states, sent } = page();
    ringing.ring('grace', 'Grace', 'r');
    sent[0].resolve(delivery);
    await eventually(() => states.length === 2, delivery);
    equal([states, sent.length], [['calling', state], 1]);
  }
});

test('a ring rings once, is missed if it is stopped, and not if another device answers', () => {
  const { ringing, missed, sent, hear } = page();
  const ids = () => ringing.incoming.map(({ id }) => id);
  hear('ring', { id: 'a', room: 'r' });
  hear('ring', { id: 'b', room: 'r' }, 'bob');
  hear('ring', { id: 'a', room: 'r' });
  for (const body of [null, 'x', {}, { id: 5, room: 'r' }, { id: 'c' }, { id: 'c', room: '' }, { id: 'x'.repeat(65), room: 'r' }, { id: 'c', room: 'x'.repeat(129) }]) hear('ring', body);
  equal(ids(), ['a', 'b']);
  hear('ring', { id: 'a', over: 'stopped' }, 'eve'); // Does not ring.
  equal(ids(), ['a', 'b']);
  hear('ring', { id: 'a', over: 'stopped' });
  hear('ring', { id: 'b', over: 'answered' }, 'bob');
  hear('ring', { id: 'a', room: 'r' });
  equal([ids(), missed], [[], ['ADA']]);
  hear('ring', { id: 'd', room: 'r' });
  ringing.answer('d', true);
  ringing.answer('d', false);
  equal([ids(), sent.map(({ to, body }) => [to, body])], [[], [['ada', { id: 'd', accepted: true }]]]);
});

test('a ring is said again while it rings, one at a time: who loads the page anew sees it', async () => {
  const { ringing, states, sent, hear } = page({ againMs: 1 });
  ringing.ring('grace', 'Grace', 'r');
  const { id } = sent[0].body;
  for (const [i, delivery] of ['delivered', 'delivered', 'offline', 'gave_up'].entries()) {
    equal(sent.length, i + 1);
    sent[i].resolve(delivery);
    await eventually(() => sent.length === i + 2, `said again after ${delivery}`);
    equal(sent[i + 1].body, { id, room: 'r' });
  }
  equal(states, ['calling', 'ringing']);
  hear('answer', { id, accepted: true }, 'grace');
  sent[4].resolve('delivered');
  await new Promise((resolve) => setTimeout(resolve, 20));
  equal([states.at(-1), sent.length, sent[5].body], ['accepted', 6, { id, over: 'answered' }]);
});

test('a ring that ends while the page is loaded is told until it arrives, and missed', async () => {
  const caller = page({ againMs: 1 });
  caller.ringing.ring('grace', 'Grace', 'r');
  const { id } = caller.sent[0].body;
  caller.sent[0].resolve('delivered');
  caller.ringing.stop(id);
  const end = { id, over: 'stopped', room: 'r' };
  for (const [i, delivery] of ['offline', 'gave_up', 'delivered'].entries()) {
    await eventually(() => caller.sent.length === i + 2, 'said again');
    equal(caller.sent[i + 1].body, end);
    caller.sent[i + 1].resolve(delivery);
  }
  await new Promise((resolve) => setTimeout(resolve, 20));
  equal(caller.sent.length, 4);
  const { ringing, missed, hear } = page();
  hear('ring', { id, over: 'answered' });
  hear('ring', { id: 'b', over: 'stopped' });
  for (const _ of [1, 2]) hear('ring', { ...end, id: 'c' });
  equal([ringing.incoming, missed], [[], ['ADA']]);
});

test('who would accept and has no link to the room does not decline', async () => {
  const callee = page();
  callee.hear('ring', { id: 'a', room: 'r' });
  callee.ringing.answer('a', false, 'needs_link');
  equal(callee.sent[0].body, { id: 'a', accepted: false, reason: 'needs_link' });
  for (const [reason, state] of [['needs_link', 'needs_link'], ['whatever', 'declined'], [undefined, 'declined']]) {
    const { ringing, states, sent, hear } = page();
    ringing.ring('grace', 'Grace', 'r');
    hear('answer', { id: sent[0].body.id, accepted: false, reason }, 'grace');
    equal(states.at(-1), state);
  }
});

test('what a closed connection did not carry is said on the next', async () => {
  const { ringing, sent, hear, connection } = page();
  hear('ring', { id: 'a', room: 'r' });
  ringing.answer('a', true);
  sent[0].reject({ code: 'left' });
  await new Promise((resolve) => setTimeout(resolve, 0));
  ringing.follow(connection());
  equal(sent.map(({ body }) => body), [{ id: 'a', accepted: true }, { id: 'a', accepted: true }]);
});

test('what is written into the field means somebody met, or an identity', () => {
  const met = [{ identity: 'u-17', name: 'Grace Hopper' }];
  equal([meant('grace hopper', met, (text) => text).identity, meant('u-17', met, (text) => text).name, meant('u-18', met, (text) => text).identity], ['u-17', 'Grace Hopper', 'u-18']);
  equal([' Grace  Hopper ', 'محمد', '👨‍👩‍👧', '‏'].map(identityInDev), ['grace-hopper', 'محمد', '👨👩👧', '']);
});

test('who joins, or takes another name, before the start page knows that it is in dev is not reached by the old name', async ({ cleanup }) => {
  const genuine = { fetch: globalThis.fetch, WebSocket: globalThis.WebSocket };
  const [configs, identities] = [[], []];
  Object.assign(globalThis, {
    fetch: (path) => {
      if (path === `${location.origin}/api/v1/config`) return new Promise((resolve) => configs.push(() => resolve(Response.json({ dev: true }))));
      identities.push(new URL(path, location.href).searchParams.get('identity'));
      return new Promise(() => {});
    },
    WebSocket: class {
      constructor() {
        sockets.push(this);
        queueMicrotask(() => this.onopen?.());
      }
      send() {}
      close() {}
    },
  });
  const sockets = [];
  cleanup(() => Object.assign(globalThis, genuine));
  const reachable = new Reachable(new Ringing(), { token: '', message: false }, () => {});
  cleanup(() => reachable.close());
  const answer = () => configs.splice(0).forEach((one) => one());
  reachable.open('Ada');
  reachable.close();
  reachable.open('Bob');
  reachable.open('Eve');
  answer();
  await eventually(() => sockets.length > 0 && configs.length >= sockets.length, 'a connection that asks for its token');
  answer();
  await eventually(() => identities.length >= sockets.length, 'tokens');
  equal([sockets.length, identities], [1, ['eve']]);
});

test('calls and rings are possible without crypto.randomUUID, which a page without https lacks', (t) => {
  Object.defineProperty(crypto, 'randomUUID', { value: undefined, configurable: true });
  t.cleanup(() => delete crypto.randomUUID);
  const call = new Call();
  const rings = new Ringing();
  let ring = null;
  rings.addEventListener('outgoing', ({ detail }) => (ring = detail.ring));
  rings.ring('grace', 'Grace', 'lair');
  rings.stopAll();
  ok(/^[0-9a-f]{32}$/.test(ring.id) && call.state === 'idle', ring.id);
});
