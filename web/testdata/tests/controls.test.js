// What is pressed in a call, and what is read there, with the elements of index.html.

import { ChatPanel } from '/page/chat-panel.js';
import { keepChoices } from '/page/choices.js';
import { Devices } from '/page/devices.js';
import { foldControls } from '/page/fold.js';
import { copyInvitation } from '/page/invitation.js';
import { askToLeave } from '/page/leave-question.js';
import { Lobby } from '/page/lobby.js';
import { Menu } from '/page/menu.js';
import { notice } from '/page/notices.js';
import { listenForKeys } from '/page/shortcuts.js';
import { say } from '/page/words.js';
import { equal, eventually, ok, test } from './harness.js';

/** One part of the document, in sight. */
async function part(selector, { cleanup }) {
  const index = new DOMParser().parseFromString(await (await fetch('/')).text(), 'text/html');
  const element = document.importNode(index.querySelector(selector), true);
  element.hidden = false;
  document.body.append(element);
  cleanup(() => element.remove());
  return element;
}

const press = (key, target = document.body) => target.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));

test('a key that leaves asks first, and keys can be switched off', async (t) => {
  await part('#leaving', t);
  const stop = new AbortController();
  t.cleanup(() => stop.abort());
  t.cleanup(() => keepChoices({ keysOff: false }));
  const done = [];
  let onEnd = null;
  listenForKeys({ l: () => askToLeave({ onLeave: () => done.push('left'), onEnd }), m: () => done.push('muted'), escape: () => done.push('closed') }, stop.signal);
  const dialog = document.querySelector('#leaving');
  press('l');
  ok(dialog.open, 'asked');
  press('m', dialog);
  dialog.querySelector('[value=stay]').click();
  await eventually(() => !dialog.open, 'closed');
  press('l');
  dialog.querySelector('[value=leave]').click();
  await eventually(() => done.length > 0, 'left');
  onEnd = () => done.push('ended');
  equal(dialog.querySelector('[value=end]').hidden, true, 'not everybody may end the call of all');
  press('l');
  dialog.querySelector('[value=end]').click();
  await eventually(() => done.length > 1, 'ended for all');
  keepChoices({ keysOff: true });
  press('m');
  press('l');
  press('Escape');
  equal(done, ['left', 'ended', 'closed'], 'Escape alone goes on');
  keepChoices({ keysOff: false });
  press('m');
  equal(done.at(-1), 'muted');
});

test('what a narrow screen hides stands in the menu, and does what its button does', async (t) => {
  const stage = await part('#stage', t);
  const stop = new AbortController();
  t.cleanup(() => stop.abort());
  foldControls(stop.signal);
  const [hand, share, settings] = ['#hand', '#share', '.controls [data-panel=settings]'].map((one) => stage.querySelector(one));
  [hand.ariaLabel, share.ariaLabel] = ['Raise hand', 'Share screen'];
  let raised = 0;
  hand.addEventListener('click', () => raised++);
  hand.style.display = 'none';
  share.style.display = 'none';
  share.hidden = true; // A phone cannot.
  stage.querySelector('#fold').click();
  const items = [...stage.querySelectorAll('[role=menuitem]')];
  equal(items.map(({ textContent }) => textContent), ['Raise hand'], 'neither what cannot be nor what is in sight');
  items[0].click();
  equal([raised, getComputedStyle(settings).display === 'none'], [1, false]);
});

test('an address in the chat leads out of the page, and markup is text', async (t) => {
  const panel = await part('#stage', t);
  const call = Object.assign(new EventTarget(), { peer: 'me', roster: [], messages: Object.assign(new EventTarget(), { scope: '' }) });
  new ChatPanel(/** @type {any} */ (call));
  t.cleanup(() => call.dispatchEvent(new CustomEvent('left')));
  const hear = (text) => call.dispatchEvent(new CustomEvent('chat', { detail: { line: { id: text, peer: 'ada', name: 'Ada', text, at: 0, own: false, state: 'sent' } } }));
  hear('<img src=x> https://example.org/a, javascript:alert(1)');
  const [link, ...more] = panel.querySelectorAll('#lines a');
  equal([link.href, link.target, link.rel, more.length], ['https://example.org/a', '_blank', 'noopener noreferrer', 0]);
  equal([panel.querySelector('#lines .text').textContent, panel.querySelectorAll('#lines img').length], ['<img src=x> https://example.org/a, javascript:alert(1)', 0]);
});

test('a success is no warning, and of news only the newest stands there', async (t) => {
  const notices = await part('#notices', t);
  notice('It is done.', { tone: 'good' });
  notice('It failed.');
  notice('Ada joined.', { tone: 'news' });
  notice('Bob joined.', { tone: 'news' });
  equal([...notices.children].map((one) => [one.className, one.firstElementChild.textContent]), [['notice good', 'It is done.'], ['notice warn', 'It failed.'], ['notice news', 'Bob joined.']]);
  equal(notices.querySelectorAll('.news button').length, 0);
});

test('after a call it is said why it is over, and one click joins again', async (t) => {
  const root = await part('#lobby', t);
  const joins = [];
  const devices = new Devices({ width: 320, height: 180, fps: 10 });
  await devices.open();
  const tracks = devices.stream.getTracks();
  equal(tracks.map(({ readyState }) => readyState), ['live', 'live']);
  const lobby = new Lobby(devices, {
    name: 'Ada', room: 'lair', link: { name: '', room: '' }, encrypt: false, mayEncrypt: false, onJoin: (name, room) => joins.push([name, room]), onCancel: () => {},
  });
  const $ = (selector) => root.querySelector(selector);
  lobby.show();
  lobby.end('lair', '');
  equal([$('#join').hidden, $('#ended').hidden, $('#ended-text').textContent], [true, false, 'You were in lair.']);
  equal([tracks.map(({ readyState }) => readyState), devices.stream.getTracks().length], [['ended', 'ended'], 0], 'its light is out');
  $('#rejoin').click();
  equal(joins, [['Ada', 'lair']]);
  lobby.setBusy(true);
  equal([$('#join').hidden, $('#ended').hidden], [false, true], 'joining is to be seen');
  lobby.setBusy(false);
  lobby.end('lair', 'A host removed you.');
  ok($('#ended-text').textContent === 'A host removed you.' && $('#ended-title').textContent !== '', 'why');
  $('#elsewhere').click();
  equal([$('#join').hidden, $('#ended').hidden], [false, true]);
  await eventually(() => devices.on('camera') && devices.on('microphone'), 'a look at oneself again');
});

test('a join that takes long can be cancelled, and a link decides the room but not a name that it lacks', async (t) => {
  const root = await part('#lobby', t);
  const cancelled = [];
  const lobby = new Lobby(new Devices({ width: 320, height: 180, fps: 10 }), {
    name: 'Ada', room: 'lair', link: { name: '', room: 'salon' }, encrypt: false, mayEncrypt: false, onJoin: () => {}, onCancel: () => cancelled.push('joining'), onName: () => {},
  });
  const $ = (selector) => root.querySelector(selector);
  equal([lobby.values, $('#room').readOnly, $('#name').readOnly], [{ name: 'Ada', room: 'salon' }, true, false]);
  lobby.room = 'elsewhere';
  equal(lobby.values.room, 'salon', 'of the link');
  lobby.say('Try again in a moment.');
  equal([$('#enter').disabled, $('#cancel').hidden], [false, true]);
  lobby.setBusy(true);
  equal([$('#enter').disabled, $('#cancel').hidden, $('#problem').textContent], [true, false, ''], 'nothing to try again while it joins');
  $('#cancel').click();
  equal(cancelled, ['joining']);
  lobby.setBusy(false);
  equal([$('#enter').disabled, $('#cancel').hidden], [false, true]);
});

test('an invitation that would lead nowhere is explained instead of copied', async (t) => {
  await part('#notices', t);
  const { fetch } = window;
  const { writeText } = navigator.clipboard;
  const copied = [];
  t.cleanup(() => Object.assign(window, { fetch }));
  t.cleanup(() => Object.assign(navigator.clipboard, { writeText }));
  navigator.clipboard.writeText = async (text) => { copied.push(text); };
  const said = () => [...document.querySelectorAll('.notice span')].map(({ textContent }) => textContent);
  const invites = async (config) => {
    document.querySelector('#notices').replaceChildren();
    window.fetch = async () => Response.json(config);
    await copyInvitation('a room', '');
  };
  await invites({ dev: false });
  equal([copied, said()], [[], [say('invite.none')]]);
  await invites({ dev: false, invite: 'https://app.example.org/join/{room}' });
  equal([copied, said()], [['https://app.example.org/join/a%20room'], [say('invite.copied')]]);
});

test('one’s own line becomes sent, and is let go of when it is pushed out of sight', async (t) => {
  const panel = await part('#stage', t);
  const call = Object.assign(new EventTarget(), { peer: 'me', roster: [], messages: Object.assign(new EventTarget(), { scope: '' }) });
  new ChatPanel(/** @type {any} */ (call));
  t.cleanup(() => call.dispatchEvent(new CustomEvent('left')));
  const hear = (id, own, state) => call.dispatchEvent(new CustomEvent('chat', { detail: { line: { id, peer: own ? 'me' : 'ada', name: 'Ada', text: id, at: 0, own, state } } }));
  hear('mine', true, 'sending');
  hear('mine', false, 'sent'); // Somebody else's line may have the same id.
  const own = () => panel.querySelectorAll('.line.own');
  equal([own()[0].dataset.state, own().length], ['sending', 1]);
  hear('mine', true, 'sent');
  equal([own()[0].dataset.state, own().length], ['sent', 1]);
  hear('late', true, 'sending');
  hear('late', true, 'failed');
  equal(own()[1].dataset.state, 'failed');
  hear('late', true, 'sent');
  equal([own()[1].dataset.state, own().length], ['sent', 2], 'its echo came after all');
  hear('lost', true, 'sending');
  hear('lost', true, 'failed');
  const lines = [...own()].map((line) => new WeakRef(line));
  for (let i = 0; i < 500; i++) hear(`line ${i}`, false, 'sent');
  equal([panel.querySelectorAll('.line').length, own().length], [500, 0]);
  await eventually(async () => {
    await gc({ execution: 'async' });
    return lines.every((line) => line.deref() === undefined);
  }, 'nothing holds the lines', 10000);
});

test('arrows go through a menu in the direction in which it is written', ({ cleanup }) => {
  for (const [dir, forward, back] of [['ltr', 'ArrowRight', 'ArrowLeft'], ['rtl', 'ArrowLeft', 'ArrowRight']]) {
    const [home, stop] = [document.body.appendChild(document.createElement('main')), new AbortController()];
    cleanup(() => { stop.abort(); home.remove(); });
    home.dir = dir;
    const button = home.appendChild(document.createElement('button'));
    new Menu(home, 'reactions', stop.signal).toggle(button, 'Letters', [...'abc'].map((label) => ({ label, onSelect: () => {} })));
    const after = (key) => {
      press(key, document.activeElement);
      return document.activeElement.textContent;
    };
    equal([forward, forward, back, 'ArrowDown', 'ArrowUp'].map(after).join(''), 'bcbcb', dir);
  }
});

test('what is meant for one goes to nobody else, also when they leave', async (t) => {
  const panel = await part('#stage', t);
  const sent = [];
  const entry = (peer) => ({ peer, identity: `id-${peer}`, name: peer.toUpperCase(), audioMuted: true, videoMuted: true });
  const messages = Object.assign(new EventTarget(), { scope: 'room', send: (to, text) => (sent.push([to, text]), Promise.resolve(to === 'id-bob' ? 'offline' : 'delivered')) });
  const call = Object.assign(new EventTarget(), { peer: 'me', roster: ['me', 'ada', 'bob'].map(entry), messages, say: (text) => sent.push(['all', text]) });
  new ChatPanel(/** @type {any} */ (call));
  t.cleanup(() => call.dispatchEvent(new CustomEvent('left')));
  const [to, line] = [panel.querySelector('#to'), panel.querySelector('#line')];
  const write = (text) => {
    line.value = text;
    panel.querySelector('#chat').requestSubmit();
  };
  equal([[...to.options].map(({ text, value }) => `${text} ${value}`), panel.querySelector('#to-choice').hidden], [['Everyone ', 'ADA id-ada', 'BOB id-bob'], false]);
  to.value = 'id-bob';
  to.dispatchEvent(new Event('change'));
  call.roster = ['me', 'ada'].map(entry);
  call.dispatchEvent(new CustomEvent('roster'));
  write('psst');
  equal([sent, line.placeholder, line.classList.contains('private')], [[['id-bob', 'psst']], 'Message BOB privately', true]);
  await eventually(() => panel.querySelector('.line.private')?.dataset.state === 'failed', 'not delivered');
  equal(panel.querySelector('.fate').textContent, 'not delivered: BOB is not online');
  to.value = '';
  to.dispatchEvent(new Event('change'));
  write('hello');
  equal([sent[1], to.options.length], [['all', 'hello'], 2]);
  messages.dispatchEvent(new CustomEvent('message', { detail: { from: 'id-ada', name: 'ADA', kind: 'text', body: '<b>hi</b>', at: 1 } }));
  messages.dispatchEvent(new CustomEvent('message', { detail: { from: 'id-ada', name: 'ADA', kind: 'app', body: { x: 1 }, at: 1 } }));
  equal([[...panel.querySelectorAll('.line.private .text')].map(({ textContent }) => textContent), panel.querySelector('#unread').textContent], [['psst', '<b>hi</b>'], '1']);
});
