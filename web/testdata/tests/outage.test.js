// What the page says when a call breaks as a whole, and of pictures that cannot be shown.

import { outage, watchOutages } from '/page/banner.js';
import { watchHealth } from '/page/health.js';
import { Keyless } from '/page/keyless.js';
import { problemOf } from '/page/problem.js';
import { Tile } from '/page/tile.js';
import { say } from '/page/words.js';
import { equal, eventually, ok, test } from './harness.js';

test('what does not work for long is said, with what still works', () => {
  const kinds = (state, silent) => [1000, 5000, 30000].map((brokenMs) => outage({ state, silent, brokenMs }));
  equal(kinds('live', false), ['', '', '']);
  equal(kinds('live', true), ['', 'media', 'unavailable'], 'nothing arrives');
  equal(kinds('mending', true), ['', 'media', 'unavailable'], 'nor do new connections');
  equal(kinds('reconnecting', false), ['', 'signaling', 'signaling'], 'media goes on');
  equal(kinds('reconnecting', true), ['', 'everything', 'everything']);
  equal(kinds('connecting', false), ['', '', ''], 'a call that begins');
});

/** The banner of index.html over a call of which only the state is there. */
async function banner({ cleanup }) {
  const index = new DOMParser().parseFromString(await (await fetch('/')).text(), 'text/html');
  const element = document.importNode(index.querySelector('#banner'), true);
  document.body.append(element);
  const call = Object.assign(new EventTarget(), { state: 'live' });
  const silences = [];
  watchOutages(/** @type {any} */ (call), (silent) => silences.push(silent));
  cleanup(() => {
    call.dispatchEvent(new CustomEvent('left'));
    element.remove();
  });
  const become = (state) => {
    call.state = state;
    call.dispatchEvent(new CustomEvent('state'));
  };
  return { call, element, silences, become };
}

test('a lost signaling node is said while sound and picture go on, and not after', async (t) => {
  const { element, silences, become } = await banner(t);
  ok(element.hidden, 'nothing to say');
  become('reconnecting');
  await eventually(() => !element.hidden, 'the banner');
  ok(/video still work/.test(element.textContent), element.textContent);
  become('live');
  ok(element.hidden, 'over');
  equal(silences, [], 'who speaks is still heard');
});

test('a node that holds pictures back is said, and nobody\'s connection is blamed', async (t) => {
  const { call, element, become } = await banner(t);
  const limit = (limited) => {
    Object.assign(call, { limited });
    call.dispatchEvent(new CustomEvent('limited', { detail: { limited } }));
  };
  limit(true);
  equal(element.dataset.outage, 'limited');
  ok(/Audio is not affected/.test(element.textContent), element.textContent);
  become('moving');
  ok(element.hidden, 'a move is under way');
  become('live');
  limit(false);
  ok(element.hidden, 'over');
});

test('when nothing arrives nobody is shown speaking, until something does', async (t) => {
  const { call, element, silences, become } = await banner(t);
  call.dispatchEvent(new CustomEvent('stalled', { detail: { silentMs: 1500 } }));
  equal(silences, [true]);
  become('mending');
  await eventually(() => !element.hidden, 'the banner');
  equal(element.dataset.outage, 'media');
  ok(!/firewall|VPN/.test(element.textContent), element.textContent);
  become('live');
  await eventually(() => element.hidden && silences.length === 2, 'over');
  equal(silences, [true, false]);
});

test('pictures that nobody can decode are nobody’s weak connection', async ({ cleanup }) => {
  let packets = 100;
  const sound = () => ({ mid: 'ada sound', peer: 'ada', kind: 'audio', source: 'microphone', packetsLost: 0, packetsReceived: packets, concealedSamples: packets * 960, totalSamplesReceived: packets * 960 });
  const slot = (peer, codec) => ({ mid: peer, peer, kind: 'video', source: 'camera', packetsLost: 0, framesDecoded: 0, codec });
  const call = Object.assign(new EventTarget(), {
    peer: 'me', state: 'live', slots: [], lacks: [],
    roster: ['me', 'ada', 'bob', 'eve'].map((peer) => ({ peer, audioMuted: peer !== 'ada', videoMuted: false })),
    stats: () => {
      packets += 50;
      const perSlot = [slot('ada', 'H264'), slot('bob', 'AV1'), slot('eve', 'VP9')].map((one) => [one.mid, { ...one, packetsReceived: packets }]).concat([['ada sound', sound()]]);
      return Promise.resolve({ perSlot: Object.fromEntries(perSlot), rttMs: 10, sentLoss: 0 });
    },
  });
  cleanup(() => call.dispatchEvent(new CustomEvent('left')));
  const told = [];
  watchHealth(/** @type {any} */ (call), () => true, (own, peers, undecoded, unheard) => told.push({ own, peers: [...peers.values()], undecoded: [...undecoded], unheard: [...unheard] }));
  await eventually(() => told.length >= 2, 'two looks');
  equal(told[1], { own: 'good', peers: ['good', null, null], undecoded: [['ada', 'H264'], ['bob', 'AV1'], ['eve', 'VP9']], unheard: ['ada'] });
});

test('who has no key is told so after two looks, by sound alone too, and no longer when it plays', ({ cleanup }) => {
  const notices = Object.assign(document.createElement('div'), { id: 'notices' });
  document.body.append(notices);
  cleanup(() => notices.remove());
  const said = () => [...notices.querySelectorAll('span')].map(({ textContent }) => textContent);
  const keyless = new Keyless();
  const nameOf = (peer) => peer.toUpperCase();
  keyless.look(new Map([['ada', 'VP8']]), new Set(), nameOf);
  equal(said(), [], 'a picture may wait for its first frame');
  keyless.look(new Map([['ada', 'VP8']]), new Set(['bob']), nameOf);
  equal(said(), [say('keyless', { names: 'BOB and ADA' })]);
  keyless.look(new Map([['eve', 'Theora']]), new Set(), nameOf);
  equal(said(), [], 'a codec is no key');
  keyless.look(new Map(), new Set(['bob']), nameOf);
  keyless.look(new Map(), new Set(['bob']), nameOf);
  equal(said(), [say('keyless', { names: 'BOB' })]);
  keyless.look(new Map(), new Set(), nameOf);
  equal(said(), []);
});

test('a codec that this browser decodes is not what is wrong', () => {
  const call = /** @type {any} */ ({ peer: 'me', lacks: [] });
  const why = (codec) => problemOf(call, null, new Map([['ada', codec]]), /** @type {any} */ ({ peer: 'ada' }), ['camera']);
  equal(why('VP8'), say('tile.undecoded'));
  equal(why(''), say('tile.undecoded'));
  equal(why('Theora'), say('tile.undecoded.codec', { codec: 'Theora' }));
});

test('one’s own picture is not greyed when the others’ are lost, and a face stands where no picture came yet', async ({ cleanup }) => {
  const style = Object.assign(document.createElement('link'), { rel: 'stylesheet', href: '/page/stage.css' });
  document.head.append(style);
  await new Promise((resolve) => style.addEventListener('load', resolve));
  cleanup(() => style.remove());
  const make = (self) => new Tile({ key: 'a', peer: 'a', self, screen: false, picture: new MediaStream(), sound: null, onPin: () => {}, onBlocked: () => {} });
  const [own, other] = [make(true), make(false)];
  for (const tile of [own, other]) {
    document.body.append(tile.root);
    cleanup(() => tile.remove());
    tile.paint({ name: 'Ada', identity: 'ada', silent: false, dark: false, paused: false, pinned: false });
    tile.judge('lost');
  }
  equal(getComputedStyle(own.video).filter, 'none');
  ok(getComputedStyle(other.video).filter !== 'none', 'what stands still');
  ok(other.root.classList.contains('dark'), 'a face until the first picture');
});
