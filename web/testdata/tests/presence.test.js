// Who is online: the list that is watched, and a connection in no room.

import { Presence } from '/holdfast/presence.js';
import { WatchList } from '/holdfast/watch-list.js';
import { equal, eventually, ok, once, test } from './harness.js';

/** Signaling nodes of which each keeps what it heard, and says what a test has it say. */
class FakeNodes {
  sockets = [];
  heard = [];
  watch = true;
  /** How many lists are refused for coming too soon. */
  refuse = 0;
  /** @type {object | null} the answer to a connect */
  error = null;

  constructor() {
    const nodes = this;
    this.WebSocket = class {
      constructor() {
        nodes.sockets.push(this);
        queueMicrotask(() => this.onopen?.());
      }
      send(text) {
        nodes.hear(JSON.parse(text));
      }
      close() {
        this.closed = true;
      }
    };
  }

  hear(message) {
    if (message.type === 'ping') return;
    this.heard.push(message);
    queueMicrotask(() => {
      if (message.type === 'connect') this.say(this.error ?? { type: 'connected', protocol: 1, identity: 'me', watch: this.watch });
      if (message.type === 'watch' && this.refuse-- > 0) this.say({ type: 'error', code: 'too_many_messages', message: 'Slow down.', retryable: true });
      else if (message.type === 'watch') this.say({ type: 'presence', users: message.users.map((user) => ({ user, state: 'online', since: 5 })) });
    });
  }

  say(message) {
    this.sockets.at(-1).onmessage?.({ data: JSON.stringify(message) });
  }

  /** The signaling node dies. */
  kill() {
    this.sockets.at(-1).onclose?.({ code: 1006 });
  }

  lists() {
    return this.heard.filter(({ type }) => type === 'watch').map(({ users }) => users.join());
  }
}

function online(options = {}) {
  const nodes = Object.assign(new FakeNodes(), options);
  const presence = new Presence({ WebSocket: /** @type {any} */ (nodes.WebSocket) });
  const told = [];
  presence.addEventListener('presence', ({ detail: { changes } }) => told.push(changes.map(({ user, state }) => `${user} ${state}`).join()));
  return { nodes, presence, told };
}

test('one who is in no room watches others, is told of changes once, and takes the list along to another node', async ({ cleanup }) => {
  const { nodes, presence, told } = online();
  cleanup(() => presence.close());
  presence.watch(['ann', 'bob', 'ann']);
  equal(presence.watched.map(({ state }) => state), ['unknown', 'unknown'], 'before an answer');
  let tokens = 0;
  await presence.connect({ url: 'http://test', token: async () => `token ${++tokens}` });
  equal([presence.state, presence.identity], ['connected', 'me']);
  await eventually(() => told.length > 0, 'an answer');
  nodes.say({ type: 'presence', users: [{ user: 'bob', state: 'offline', lastSeen: 7 }, { user: 'ann', state: 'online', since: 5 }, { user: 'eve', state: 'online' }] });
  equal(told, ['ann online,bob online', 'bob offline']);
  equal(presence.watched, [{ user: 'ann', state: 'online', since: 5 }, { user: 'bob', state: 'offline', lastSeen: 7 }]);

  const states = [];
  presence.addEventListener('state', ({ detail: { state } }) => states.push(state));
  nodes.kill();
  await eventually(() => states.includes('connected'), 'another node');
  await eventually(() => told.length > 2, 'an answer of the other node');
  equal(states, ['reconnecting', 'connected']);
  equal(nodes.heard.map(({ type, token }) => token ?? type), ['token 1', 'watch', 'token 2', 'watch'], 'said');
  equal(told.slice(2), ['bob online'], 'what changed meanwhile');
});

test('a list that scrolls by is said once a second, its last state always, and a refused one again', async ({ cleanup }) => {
  const { nodes, presence } = online({ refuse: 1 });
  cleanup(() => presence.close());
  const errors = [];
  presence.addEventListener('error', ({ detail }) => errors.push(detail.code));
  await presence.connect({ url: 'http://test', token: 't' });
  for (let i = 0; i < 50; i++) presence.watch(['ann', `user ${i}`]);
  await eventually(() => nodes.lists().includes('ann,user 49'), 'the last list');
  equal(nodes.lists(), ['ann,user 0', 'ann,user 49']);
  presence.watch([]);
  await eventually(() => nodes.lists().at(-1) === '', 'nobody is watched');
  equal([presence.watched, errors], [[], []]);

  nodes.refuse = 1;
  presence.watch(['cy']);
  await eventually(() => presence.watched[0].state === 'online', 'the list is said again');
  equal(nodes.lists().slice(-2), ['cy', 'cy']);
  let refused = '';
  try {
    presence.watch(Array.from({ length: 501 }, (_, i) => `user ${i}`));
  } catch (error) {
    refused = error.code;
  }
  equal([refused, presence.watched.length], ['too_many_watched', 1]);
});

test('a refusal for now is tried again, one for good ends it, and a token that may not watch is told', async ({ cleanup }) => {
  const { nodes, presence, told } = online({ error: { type: 'error', code: 'too_many_sockets', message: 'Later.', retryable: true, retryAfterMs: 20 }, watch: false });
  cleanup(() => presence.close());
  const errors = [];
  presence.addEventListener('error', ({ detail }) => errors.push(detail.code));
  presence.watch(['ann']);
  const connected = presence.connect({ url: 'http://test', token: 't' });
  await eventually(() => errors.length > 1, 'refused twice');
  nodes.error = null;
  await connected;
  await eventually(() => errors.at(-1) === 'not_watched', 'told that it may not watch');
  equal([nodes.lists(), told], [[], []]);

  nodes.error = { type: 'error', code: 'token_expired', message: 'Ask for another.', retryable: false };
  const closed = once(presence, 'closed');
  nodes.kill();
  equal([(await closed).code, presence.state], ['token_expired', 'closed']);

  const refused = online({ error: nodes.error }).presence;
  equal(await refused.connect({ url: 'http://test', token: 't' }).catch(({ code }) => code), 'token_expired');
});

test('closing says so, and a slow token of an older try is not sent', async () => {
  const { nodes, presence } = online();
  const tokens = [];
  presence.connect({ url: 'http://test', token: () => new Promise((resolve) => tokens.push(resolve)) }).catch(() => {});
  await eventually(() => tokens.length === 1, 'a token is wanted');
  nodes.kill();
  await eventually(() => tokens.length === 2, 'another is wanted');
  tokens[0]('old');
  tokens[1]('new');
  await eventually(() => presence.state === 'connected', 'connected');
  equal(nodes.heard.map(({ token }) => token), ['new']);
  presence.close();
  equal([nodes.heard.at(-1).type, nodes.sockets.at(-1).closed, presence.state], ['leave', true, 'closed']);
});

test('after a while without a connection nothing is known', async ({ cleanup }) => {
  const owner = new EventTarget();
  const list = new WatchList(owner, () => true);
  cleanup(() => list.close());
  list.set(['ann', 'bob']);
  list.opened(true);
  list.heard([{ user: 'ann', state: 'online', since: 1 }]);
  list.lost();
  equal(list.users[0].state, 'online', 'at first');
  equal((await once(owner, 'presence')).changes, [{ user: 'ann', state: 'unknown' }]);
  ok(list.users.every(({ state }) => state === 'unknown'));
});
