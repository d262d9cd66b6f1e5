// The page's own reasoning: layout, order, quality, sentences.

import { arrange, bestGrid, capacity, duet } from '/page/layout.js';
import { said } from '/page/gestures.js';
import { handsFirst, places } from '/page/hands.js';
import { Order } from '/page/order.js';
import { fair, ofPeer, ofSelf } from '/page/quality.js';
import { showAllowed } from '/page/allowed.js';
import { ofCall, ofDevice, ofGrant, whileTrying, whoIsHere } from '/page/sentences.js';
import { readToken } from '/page/tokens.js';
import { colour, initials } from '/page/face.js';
import { pieces } from '/page/links.js';
import { invitationTo } from '/page/invitation.js';
import { ago, leavers } from '/page/left.js';
import { equal, ok, test } from './harness.js';

const screens = [[1280, 640], [1920, 950], [900, 500], [374, 680], [680, 300], [2560, 1300], [320, 480]];

test('tiles never overlap, never leave the screen, and are all of one size', () => {
  for (const [width, height] of screens) {
    for (let count = 1; count <= 25; count++) {
      const boxes = arrange({ count, large: false, width, height, gap: 10 });
      equal(boxes.length, count, 'one box for each');
      for (const box of boxes) {
        const where = `${count} on ${width}x${height}: ${JSON.stringify(box)}`;
        ok(box.x >= 0 && box.y >= 0 && box.x + box.width <= width && box.y + box.height <= height, where);
        ok(box.width === boxes[0].width && box.height === boxes[0].height, where);
        ok(box.width / box.height > 0.95 && box.width / box.height < 1.85, `${where} has a shape for faces`);
      }
      apart(boxes, `${count} on ${width}x${height}`);
    }
  }
});

test('somebody has left with the last tab, once, and not who is back', () => {
  const [ann, bob, cy] = ['ann', 'bob', 'cy'].map((identity) => ({ identity, name: identity.toUpperCase() }));
  let left = leavers([], [ann, bob, bob, cy], [ann, bob, cy], 1);
  equal(left, [], 'a tab of two');
  left = leavers(left, [ann, bob, cy], [ann, cy], 2);
  left = leavers(left, [ann, cy], [ann], 3);
  equal(left.map(({ identity, at }) => `${identity}${at}`), ['cy3', 'bob2'], 'the newest first');
  left = leavers(left, [ann], [ann, bob], 4);
  equal(left.map(({ identity }) => identity), ['cy'], 'bob is back');
  equal([0, 59_000, 60_000, 150_000, 3_600_000, 7_300_000].map(ago), ['just now', 'just now', '1 minute ago', '2 minutes ago', '1 hour ago', '2 hours ago'], 'times');
});

test('one person has the whole screen, and a screen of no size has no tiles', () => {
  equal(arrange({ count: 1, large: false, width: 1600, height: 900, gap: 10 }), [{ x: 0, y: 0, width: 1600, height: 900 }]);
  for (const large of [false, true]) equal(arrange({ count: 3, large, width: 0, height: 0, gap: 10 }), []);
  equal(bestGrid({ count: 0, width: 0, height: 0, gap: 10 }).width, 0);
});

test('no other number of columns shows larger wide tiles', () => {
  for (const [width, height] of screens.filter(([w, h]) => w >= h)) {
    for (let count = 1; count <= 25; count++) {
      const best = bestGrid({ count, width, height, gap: 10 });
      for (let columns = 1; columns <= count; columns++) {
        const rows = Math.ceil(count / columns);
        const tile = Math.floor(Math.min((width - 10 * (columns - 1)) / columns, ((height - 10 * (rows - 1)) / rows) * (16 / 9)));
        ok(best.width * best.height * 1.06 >= tile * Math.floor(tile / (16 / 9)), `${count} on ${width}x${height} in ${columns} columns`);
      }
    }
  }
});

test('two people share a wide screen side by side and an upright one one above the other', () => {
  const [left, right] = arrange({ count: 2, large: false, width: 1280, height: 640, gap: 10 });
  ok(left.y === right.y && left.x < right.x, 'side by side');
  const [upper, lower] = arrange({ count: 2, large: false, width: 374, height: 680, gap: 8 });
  ok(upper.x === lower.x && upper.y < lower.y, 'one above the other');
});

test('a large tile has most of the place, and the others stand beside or below it', () => {
  for (const [width, height] of screens) {
    const most = capacity({ width, height, gap: 10, large: true });
    for (let count = 1; count <= most; count++) {
      const boxes = arrange({ count, large: true, width, height, gap: 10 });
      equal(boxes.length, count, `boxes of ${count} on ${width}x${height}`);
      apart(boxes, `${count} on ${width}x${height}, one large`);
      for (const box of boxes) ok(box.x >= 0 && box.y >= 0 && box.x + box.width <= width && box.y + box.height <= height, `${JSON.stringify(box)} on ${width}x${height}`);
      if (count > 1) ok(boxes[0].width * boxes[0].height > boxes[1].width * boxes[1].height, 'the large one is the largest');
    }
  }
});

test('a large picture has exactly its ratio, and the strip has the rest', () => {
  for (const [width, height] of screens) {
    for (const ratio of [16 / 9, 4 / 3, 21 / 9, 9 / 19.5]) {
      const most = capacity({ width, height, gap: 10, large: true, ratio });
      for (let count = 1; count <= most; count++) {
        const where = `${count} on ${width}x${height}, ${ratio}`;
        const [large, ...others] = arrange({ count, large: true, width, height, gap: 10, ratio });
        ok(Math.abs(large.width - large.height * ratio) <= Math.max(ratio, 1), `${where}: ${JSON.stringify(large)}`);
        apart([large, ...others], where);
        for (const box of [large, ...others]) ok(box.x >= 0 && box.y >= 0 && box.x + box.width <= width && box.y + box.height <= height, `${where}: ${JSON.stringify(box)}`);
        for (const box of others) ok(box.width * box.height < large.width * large.height, `${where}: the large one is the largest`);
      }
    }
  }
  ok(capacity({ width: 1256, height: 646, gap: 10, large: true, ratio: 16 / 9 }) >= 6, 'a slide and five people need one page');
  const [slide, tile] = arrange({ count: 6, large: true, width: 374, height: 690, gap: 8, ratio: 16 / 9 });
  ok(slide.y === 0 && slide.width === 374 && tile.y > slide.height, 'on a phone the strip begins under the slide');
});

test('of two people the other one is large and oneself a small picture in its corner', () => {
  for (const [width, height] of screens) {
    for (const ratio of [0, 16 / 9, 4 / 3, 9 / 16]) {
      const [other, own] = duet({ width, height, gap: 10, ratio, rightToLeft: false });
      const where = `${width}x${height}, ${ratio}: ${JSON.stringify([other, own])}`;
      for (const box of [other, own]) ok(box.x >= 0 && box.y >= 0 && box.x + box.width <= width && box.y + box.height <= height, where);
      ok(own.width * own.height * 4 < other.width * other.height, where);
      ok(own.x + own.width === width - 10 && own.y + own.height === height - 10, where);
      const shown = other.width / other.height;
      if (ratio > 0) ok(shown > ratio * 0.44 && shown < ratio * 1.36, `${where}: too much is cut off`);
      else equal([other.width, other.height], [width, height], where);
      equal(duet({ width, height, gap: 10, ratio, rightToLeft: true })[1].x, 10, 'at the other side');
    }
  }
});

test('what fits is never too small to see, and never more than 25', () => {
  for (const [width, height] of screens) {
    const most = capacity({ width, height, gap: 10, large: false });
    ok(most >= 1 && most <= 25, `${most} on ${width}x${height}`);
    ok(bestGrid({ count: most, width, height, gap: 10 }).width >= Math.min(150, (width - 10) / 2), `the tiles of ${most} on ${width}x${height}`);
  }
  equal(capacity({ width: 1920, height: 950, gap: 10, large: false }), 25, 'a large screen shows 25');
});

test('nobody jumps: who comes stands last, and who leaves closes the gap', () => {
  const order = new Order();
  order.sync(['a', 'b', 'c']);
  order.sync(['d', 'c', 'a']);
  equal(order.keys, ['a', 'c', 'd'], 'order');
});

test('raised hands stand first, in their order', () => {
  const roster = [{ peer: 'a' }, { peer: 'b', handRaised: 9 }, { peer: 'c' }, { peer: 'd', handRaised: 3 }];
  equal(handsFirst(roster).map(({ peer }) => peer).join(''), 'dbac');
  equal([...places(roster)].map(([peer, place]) => `${peer}${place}`).join(' '), 'd1 b2 a0 c0');
});

test('a burst of reactions is told in a sentence', () => {
  const crowd = ['👏', '👏', '🎉', '👏', '👏', '👏'].map((emoji, i) => ({ peer: `p${i}`, emoji }));
  equal(said(crowd, (peer) => peer.toUpperCase()), 'P0, P1, P3, and 2 more: applause. P2: celebration.');
});

test('who speaks unseen changes places with whoever has been silent longest', () => {
  const order = new Order();
  order.sync(['me', 'b', 'c', 'd', 'e']);
  order.heard(['b'], 3, 'me');
  equal(order.keys, ['me', 'b', 'c', 'd', 'e'], 'a speaker in sight moves nobody');
  ok(order.heard(['e'], 3, 'me'), 'moved');
  equal(order.keys, ['me', 'b', 'e', 'd', 'c'], 'e takes the place of c, who has never spoken');
  ok(!order.heard(['b', 'e', 'd'], 3, 'me'), 'nobody who speaks is moved, nor is oneself');
});

test('a connection is good, weak or lost as a person sees it', () => {
  const audio = { kind: 'audio', expected: true, packets: 100, lost: 0, frames: 0 };
  const video = { kind: 'video', expected: true, packets: 200, lost: 0, frames: 50 };
  equal(ofPeer([audio, video], 2), 'good');
  equal(ofPeer([audio, { ...video, frames: 4 }], 2), 'weak', 'a slide show');
  equal(ofPeer([{ ...audio, lost: 20 }, video], 2), 'weak', 'loss');
  equal(ofPeer([audio, { ...video, packets: 0, frames: 0 }], 2), 'weak', 'no picture');
  equal(ofPeer([{ ...audio, packets: 0 }, { ...video, packets: 0 }], 2), 'lost');
  equal(ofPeer([{ ...audio, expected: false, packets: 0 }, { ...video, expected: false, packets: 0 }], 2), null, 'muted and hidden is no fault');
  equal(ofPeer([audio, { ...video, paused: true, packets: 0 }], 2), 'weak', 'held back for a narrow way');
  const self = { state: 'live', rttMs: 20, sentLoss: 0, held: false, peers: ['good', 'lost'] };
  equal(ofSelf(self), 'good', 'one bad connection is somebody else’s');
  equal(ofSelf({ ...self, peers: ['lost', 'lost'] }), 'lost', 'all bad ones are ours');
  equal(ofSelf({ ...self, peers: ['weak', 'weak', 'weak', 'good'] }), 'weak', 'nearly everybody');
  equal(ofSelf({ ...self, peers: ['weak', 'good', 'good', 'lost'] }), 'good', 'half of them');
  equal(ofSelf({ ...self, state: 'mending' }), 'lost');
  equal(ofSelf({ ...self, held: true }), 'weak', 'pictures held back');
  equal(ofSelf({ ...self, rttMs: 900 }), 'weak');
  equal(ofSelf({ ...self, sentLoss: 0.2 }), 'weak');
  equal(ofSelf({ ...self, state: 'moving' }), 'lost');
  equal(ofSelf({ ...self, state: 'reconnecting' }), 'weak');
  const others = /** @type {Map<string, import('/page/quality.js').Quality | null>} */ (new Map([['ada', 'weak'], ['bob', 'lost'], ['eve', 'good'], ['joe', null]]));
  equal([...fair('good', others).values()].join(), 'weak,lost,good,', 'theirs');
  equal([...fair('weak', others).values()].join(), ',lost,good,', 'ours, and they are not to blame');
});

test('every failure has a sentence that says what to do', () => {
  const codes = ['unreachable', 'room_full', 'room_closed', 'turned_away', 'token_expired', 'bad_token', 'superseded', 'kicked', 'call_ended', 'resume_expired', 'no_capacity', 'no_nodes',
    'store_unavailable', 'node_unreachable', 'not_ready', 'too_many_sockets', 'internal', 'no_token'];
  const said = new Set();
  for (const code of codes) {
    const sentence = ofCall({ code, message: 'of the server' });
    ok(/^[A-Z].{20,}\.$/.test(sentence) && sentence !== 'of the server', `${code}: ${sentence}`);
    said.add(sentence);
  }
  ok(said.size >= codes.length, 'no two codes say the same');
  equal(ofCall({ code: 'unheard', message: 'The server says why.' }), 'The server says why.', 'the server knows better');
  for (const name of ['NotAllowedError', 'NotFoundError', 'NotReadableError', 'OverconstrainedError', 'AbortError', 'Unheard']) {
    ok(ofDevice(new DOMException('', name), 'camera').includes('camera'), name);
  }
});

test('the key of an encrypted call stands in its invitation, behind the #', () => {
  const link = new URL(invitationTo('a room', 'k-_1', '/?room={room}'));
  equal([link.searchParams.get('room'), link.hash, link.search.includes('k-_1')], ['a room', '#key=k-_1', false]);
  equal(new URL(invitationTo('a room', '', '/?room={room}')).hash, '');
  equal(invitationTo('a/b', 'k', 'https://app.example.org/join/{room}#tab=2'), 'https://app.example.org/join/a%2Fb#tab=2&key=k', 'of the application');
});

test('what passes by itself asks nobody to try again while the page does', () => {
  for (const code of ['no_capacity', 'no_nodes', 'node_unreachable', 'not_ready', 'too_many_sockets', 'no_token']) {
    ok(whileTrying({ code, message: '' }).endsWith('Trying again…') && ofCall({ code, message: '' }).endsWith('Try again in a moment.'), code);
  }
  equal(whileTrying({ code: 'room_full', message: '' }), ofCall({ code: 'room_full', message: '' }));
});

test('a token says its room, its name and what it allows', () => {
  const token = (claims) => `x.${btoa(String.fromCharCode(...new TextEncoder().encode(JSON.stringify(claims)))).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')}.y`;
  equal(readToken(token({ name: 'Åsa 🦊', video: { room: 'lair', canPublish: true } })), { room: 'lair', name: 'Åsa 🦊', microphone: true, camera: true, message: false });
  equal(readToken(token({ video: { canPublish: false } })), { room: '', name: '', microphone: false, camera: false, message: false });
  equal(readToken(token({ video: { canPublishSources: ['microphone'] } })), { room: '', name: '', microphone: true, camera: false, message: false });
  equal(readToken(token({ video: { canMessage: true } })).message, true);
  for (const none of ['', 'x', 'a.b.c', token(null), token({ video: null })]) equal(readToken(none), { room: '', name: '', microphone: true, camera: true, message: false }, none);
  equal(new Set([[true, true], [true, false], [false, true], [false, false]].map(([microphone, camera]) => ofGrant({ microphone, camera }))).size, 4);
});

test('who is in the room is said in a line', () => {
  const say = (...names) => whoIsHere(names).replaceAll(/[\u2068\u2069]/g, '');
  equal([say(), say('Ada'), say('Ada', 'Alan'), say('Ada', 'Alan', 'Grace'), say('Ada', 'Alan', 'Grace', 'Joan'), whoIsHere(null)],
    ['No one is here yet.', 'Ada is here.', 'Ada and Alan are here.', 'Ada, Alan and one more are here.', 'Ada, Alan and 2 more are here.', '']);
});

test('what the token forbids is not offered, and what failed does not look switched off', () => {
  const root = document.createElement('div');
  root.innerHTML = '<button data-toggle="microphone"></button><button data-toggle="camera"></button><button id="share"></button>';
  const [microphone, camera, share] = root.children;
  const devices = { on: () => false, problems: { microphone: 'Your microphone is blocked.', camera: 'Your camera is blocked.' } };
  showAllowed(root, (source) => source === 'microphone', devices);
  equal([microphone, camera, share].map((button) => button.getAttribute('aria-disabled')), ['false', 'true', 'true']);
  equal([microphone.title, microphone.className, camera.className], ['Your microphone is blocked.', 'troubled', '']);
  ok(camera.title.includes('does not allow') && share.title.includes('does not allow'), camera.title);
  showAllowed(root, () => true, { ...devices, on: () => true });
  equal([microphone.className, share.getAttribute('aria-disabled')], ['', 'false']);
});

test('initials are of every writing', () => {
  equal(['Ada Lovelace', 'ada', '  Grace  B.  Hopper ', 'Åsa Öberg', '李 雷', '🦊 Fox', ''].map(initials), ['AL', 'A', 'GH', 'ÅÖ', '李雷', '🦊F', '']);
  equal(['\u{1f468}\u200d\u{1f469}\u200d\u{1f467} Smith', 'A\u030asa', '\u092e\u0940\u200d\u0930'].map(initials), ['\u{1f468}\u200d\u{1f469}\u200d\u{1f467}S', 'A\u030a', '\u092e\u0940\u200d'], 'a character is made of several');
});

test('similar names have colours that differ', () => {
  for (const name of ['Ada', 'person-', '']) {
    const seen = [...'0123456789'].map((end) => colour(name + end));
    equal(new Set(seen).size, 10, `${name}0 to ${name}9`);
    const hues = seen.map((one) => Number(one.match(/([0-9]+)\)/)[1]));
    for (let i = 1; i < hues.length; i++) ok(Math.abs(hues[i] - hues[i - 1]) > 60, `${seen[i]} beside ${seen[i - 1]}`);
  }
});

test('addresses in the chat are links, and nothing else is', () => {
  const links = (text) => pieces(text).filter(({ href }) => href).map(({ text: shown, href }) => (shown === href ? href : [shown, href]));
  equal(links('see https://example.org/a?b=c#d. And (https://example.org/x_(y)), or https://example.org/z!'), ['https://example.org/a?b=c#d', 'https://example.org/x_(y)', 'https://example.org/z']);
  equal(links('HTTPS://Example.org'), [['HTTPS://Example.org', 'https://example.org/']]);
  for (const none of ['http://example.org', 'javascript:alert(1)', 'https://', 'https://good.example@bad.example/', 'https:// x', '<b>https</b>', 'ftp://x', 'data:text/html,x']) equal(links(none), [], none);
  equal(links('https://example.org/\u202egro.evil'), ['https://example.org/'], 'what turns the direction round ends it');
});

test('whatever is written, the pieces are the text, and links lead to https', () => {
  const bits = ['https://', 'HTTPS:', '//', 'a.b', '@', ':', '(', ')', '[', ']', '.', '?', '#', '%', '\u202e', '\u0000', '🦊', ' ', '<a href="', '">', '\n', 'x'];
  let seed = 7;
  for (let round = 0; round < 3000; round++) {
    let text = '';
    for (let n = 0; n < 12; n++) text += bits[(seed = (seed * 1103515245 + 12345) % 2147483648) % bits.length];
    const found = pieces(text);
    equal(found.map((piece) => piece.text).join(''), text);
    for (const { text: shown, href } of found) ok(href === undefined || (/^https:\/\//.test(href) && !/[\s<>"\u202e]/u.test(shown)), `${text}: ${href}`);
  }
});

function apart(boxes, what) {
  for (let i = 0; i < boxes.length; i++) {
    for (let j = i + 1; j < boxes.length; j++) {
      const [a, b] = [boxes[i], boxes[j]];
      ok(a.x + a.width <= b.x || b.x + b.width <= a.x || a.y + a.height <= b.y || b.y + b.height <= a.y, `${what}: ${i} and ${j} are apart`);
    }
  }
}

test('an address with many brackets behind it costs time in proportion to its length', () => {
  const text = (n) => `see https://a.b/${')'.repeat(n)}.`;
  equal(pieces(text(3)), [{ text: 'see ' }, { text: 'https://a.b/', href: 'https://a.b/' }, { text: '))).' }]);
  // The same number of characters, in short texts and in long ones: the best of ten.
  const took = (n, times) => Math.min(...Array.from({ length: 10 }, () => {
    const began = performance.now();
    for (let i = 0; i < times; i++) equal(pieces(text(n)).length, 3);
    return performance.now() - began;
  }));
  const [short, long] = [took(500, 80), took(20000, 2)];
  ok(long < 15 * short, `${short} ms and ${long} ms`);
});
