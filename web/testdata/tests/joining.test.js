// The page as it is, in a frame: what is ready for a join, and what a join that is cancelled leaves behind.

import { equal, eventually, test } from './harness.js';

/** The page in dev, of which a test answers when it asks for the token of the room. */
async function page({ cleanup }) {
  const frame = Object.assign(document.createElement('iframe'), { src: '/?room=blue&name=Ada', allow: 'camera; microphone' });
  const loaded = new Promise((resolve) => frame.addEventListener('load', resolve, { once: true }));
  document.body.append(frame);
  cleanup(() => frame.remove());
  await loaded;
  const { contentWindow: inside, contentDocument: document_ } = frame;
  const [workers, tokens] = [[], []];
  inside.Worker = class extends inside.Worker {
    constructor(...args) {
      super(...args);
      workers.push(this);
    }
    terminate() {
      this.terminated = true;
      super.terminate();
    }
  };
  const connections = [];
  inside.RTCPeerConnection = class extends inside.RTCPeerConnection {
    constructor(...args) {
      super(...args);
      connections.push(this);
    }
  };
  inside.fetch = (path) => {
    if (!path.includes('room=blue')) return Promise.resolve(Response.json({ dev: true }));
    return new Promise((resolve) => tokens.push(() => resolve(Response.json({ token: 't' }))));
  };
  const find = (selector) => document_.querySelector(selector);
  return { workers, tokens, connections, find };
}

test('a join of an encrypted call that is cancelled while it asks for its token ends the worker', async (t) => {
  const { workers, tokens, connections, find } = await page(t);
  await eventually(() => !find('#enter').disabled, 'the page is ready');
  find('#encrypt').checked = true;
  find('#join').requestSubmit();
  await eventually(() => tokens.length === 1, 'a token is wanted');
  equal(workers.map(({ terminated }) => terminated ?? false), [false], 'it is ready by then');
  find('#cancel').click();
  tokens[0]();
  await eventually(() => workers.every(({ terminated }) => terminated), 'it is ended', 10000);
  equal([workers.length, find('#lobby').hidden], [1, false]);
  await eventually(() => connections.filter(({ signalingState }) => signalingState !== 'closed').length === 1, 'only the next one is open');
});

test('the lobby has a connection ready, which a join takes and its end closes', async (t) => {
  const { tokens, connections, find } = await page(t);
  await eventually(() => !find('#enter').disabled, 'the page is ready');
  await eventually(() => connections.length === 1, 'a connection is ready');
  find('#join').requestSubmit();
  await eventually(() => tokens.length === 1, 'a token is wanted');
  equal(connections.map(({ signalingState }) => signalingState), ['stable'], 'the join takes the one that is ready');
  find('#cancel').click();
  await eventually(() => connections.length === 2, 'another one is ready');
  equal(connections.map(({ signalingState }) => signalingState), ['closed', 'stable']);
});
