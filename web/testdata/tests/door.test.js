// The room's door: what a host's client says and hears of it, and the People panel.

import { CallError } from '/holdfast/errors.js';
import { Moderation } from '/holdfast/moderation.js';
import { DoorPanel } from '/page/door-panel.js';
import { equal, eventually, ok, test } from './harness.js';

const open = { type: 'door', closed: false, inside: 1, length: 0, line: [] };
const waiting = (...line) => ({ type: 'door', cap: 2, closed: true, inside: 2, length: line.length, line });

/** A call of which only the moderation is there. */
function host({ cleanup }, moderate = true) {
  const [call, session] = [new EventTarget(), new EventTarget()];
  const me = { permissions: { moderate } };
  const room = { call, session, me, sent: [], kept: [], errors: [], away: false };
  call.moderation = new Moderation(call, {
    send: (message) => {
      if (!room.away) room.sent.push(message);
      return !room.away;
    },
    sendOrKeep: (message) => (room.away ? room.kept : room.sent).push(message),
    mute: () => {},
    isMuted: () => true,
    me: () => me,
  });
  call.moderation.follow(session);
  // As the call does.
  session.addEventListener('error', ({ detail }) => room.errors.push(detail.code));
  call.addEventListener('error', ({ detail }) => room.errors.push(detail.code));
  room.hear = (message) => session.dispatchEvent(new CustomEvent('message', { detail: message }));
  room.fail = (code) => session.dispatchEvent(new CustomEvent('error', { detail: new CallError(code) }));
  room.take = () => room.sent.splice(0);
  cleanup(() => call.dispatchEvent(new CustomEvent('left')));
  return room;
}

/** The panel in a page with the elements of index.html. */
async function panel(t) {
  const index = new DOMParser().parseFromString(await (await fetch('/')).text(), 'text/html');
  const stage = document.importNode(index.querySelector('#stage'), true);
  stage.hidden = stage.querySelector('#side').hidden = stage.querySelector('#panel-people').hidden = false;
  document.body.append(stage);
  const style = Object.assign(document.createElement('style'), { textContent: '[hidden] { display: none !important; }' });
  document.head.append(style);
  let hidden = false;
  Object.defineProperty(document, 'hidden', { configurable: true, get: () => hidden });
  t.cleanup(() => {
    stage.remove();
    style.remove();
    delete document.hidden;
  });
  const room = host(t);
  const shown = new DoorPanel(room.call);
  const $ = (selector) => stage.querySelector(selector);
  const names = () => [...$('#waiting').querySelectorAll('.who')].map(({ textContent }) => textContent);
  const button = (identity, label) => $(`#waiting [aria-label="${label} ${identity}"]`);
  return { ...room, shown, $, names, button, hide: (value) => (hidden = value) };
}

test('a host asks for the door and does what it may; an answer is the door', (t) => {
  const { call, hear, take, errors } = host(t);
  const { door } = call.moderation;
  const heard = [];
  call.addEventListener('door', ({ detail }) => heard.push(detail.door.length));
  equal(door.latest, null);
  door.ask();
  door.ask();
  equal(take(), [{ type: 'door' }], 'one ask at a time');
  hear(waiting({ identity: 'ann', since: 5 }));
  equal([door.latest.line, heard], [[{ identity: 'ann', since: 5 }], [1]]);
  door.ask();
  door.set({ closed: false });
  door.set({ cap: -1 });
  door.letIn('ann');
  door.turnAway('bob');
  equal(take(), [{ type: 'door' }, { type: 'door', closed: false }, { type: 'door', cap: -1 }, { type: 'let-in', identity: 'ann' }, { type: 'turn-away', identity: 'bob' }]);
  equal(errors, []);
});

test('what a host does without a socket is done when it is back; questions are not', (t) => {
  const room = host(t);
  const { moderation } = room.call;
  room.away = true;
  moderation.door.ask();
  moderation.door.turnAway('bob');
  moderation.act('mute', 'p-1');
  moderation.raiseHand(true);
  moderation.react('👍');
  equal([room.sent, room.kept.map(({ type }) => type)], [[], ['turn-away', 'moderate', 'hand']]);
});

test('who runs no room neither asks nor sees', (t) => {
  const { call, me, hear, take, errors } = host(t);
  const { door } = call.moderation;
  hear(open);
  me.permissions = {};
  door.ask();
  door.letIn('ann');
  equal([door.latest, take(), errors], [null, [], ['not_moderator']]);
});

test('an ask that the store cannot answer is no news, a deed is', (t) => {
  const room = host(t);
  const { door } = room.call.moderation;
  door.ask();
  room.fail('store_unavailable');
  door.ask();
  room.fail('internal');
  door.set({ closed: true });
  room.fail('store_unavailable');
  equal(room.errors, ['internal', 'store_unavailable']);
  room.take();
  room.away = true;
  door.ask();
  room.away = false;
  door.ask();
  equal(room.take(), [{ type: 'door' }], 'a socket that was away answers no ask');
  room.session.dispatchEvent(new CustomEvent('lost'));
  door.ask();
  equal(room.take(), [{ type: 'door' }], 'nor does one that was lost');
});

test('a host locks the room and sets its cap', async (t) => {
  const { $, hear, take } = await panel(t);
  equal([$('#door').hidden, take()], [true, [{ type: 'door' }]], 'asked at once');
  hear(open);
  equal([$('#door').hidden, $('#lock').textContent, $('#most').value, $('#locked').hidden, $('#waiting').hidden], [false, 'Lock the room', '', true, true]);
  $('#lock').click();
  hear(waiting());
  equal([$('#lock').textContent, $('#most').value, $('#locked').hidden], ['Unlock the room', '2', false]);
  $('#lock').click();
  for (const value of ['12', '', '0']) {
    $('#most').value = value;
    $('#most').dispatchEvent(new Event('change'));
  }
  equal(take(), [{ type: 'door', closed: true }, { type: 'door', closed: false }, { type: 'door', cap: 12 }, { type: 'door', cap: -1 }], 'and no cap of 0');
  $('#most').focus();
  $('#most').value = '7';
  hear(waiting());
  equal($('#most').value, '7', 'what somebody writes stays');
  $('#most').dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape' }));
  equal($('#most').value, '2');
});

test('who waits is shown in order, counted on the button, announced once, and let in or turned away', async (t) => {
  const { $, call, me, shown, hear, take, names, button } = await panel(t);
  hear(waiting({ identity: 'u-7', name: 'Eve (self-chosen)', since: 1 }));
  equal([names(), $('#waiting .who').title, $('#whisper').textContent], [['Eve (self-chosen)'], 'u-7', 'Eve (self-chosen) is waiting to join.'], 'a name, and whose it is');
  button('Eve (self-chosen)', 'Turn away').click();
  equal(take().at(-1), { type: 'turn-away', identity: 'u-7' });
  hear(waiting());
  hear(waiting({ identity: 'ann', since: 1 }, { identity: 'bob', since: 2 }));
  equal([names(), $('#waiting-title').textContent, $('#whisper').textContent], [['ann', 'bob'], '2 waiting', '2 people are waiting to join.']);
  equal([$('#waiting-count').textContent, $('#waiting-count').hidden, $('#waiting-word').hidden], ['2', false, false]);
  shown.setOpen(true);
  ok($('#waiting-count').hidden && $('#waiting-word').hidden, 'no badge over an open panel');
  $('#whisper').textContent = '';
  hear(waiting({ identity: 'ann', since: 1 }, { identity: 'bob', since: 2 }));
  equal($('#whisper').textContent, '', 'announced once');
  hear(waiting({ identity: 'ann', since: 1 }, { identity: 'bob', since: 2 }, { identity: 'cy', since: 3 }));
  equal($('#whisper').textContent, 'cy is waiting to join.');
  take();
  button('cy', 'Let in').focus();
  button('cy', 'Let in').click();
  hear(waiting({ identity: 'cy' }, { identity: 'ann', since: 1 }, { identity: 'bob', since: 2 }));
  equal([names(), button('cy', 'Let in').hidden, $('#waiting .ago').textContent], [['cy', 'ann', 'bob'], true, 'Comes next']);
  ok($('#waiting').contains(document.activeElement), 'the focus stays in the line');
  button('bob', 'Turn away').focus();
  button('bob', 'Turn away').click();
  hear(waiting({ identity: 'ann', since: 1 }));
  equal([names(), document.activeElement.getAttribute('aria-label')], [['ann'], 'Let in ann'], 'the next one has the focus');
  hear(waiting());
  equal([$('#waiting').hidden, document.activeElement.id], [true, 'lock']);
  equal(take(), [{ type: 'let-in', identity: 'cy' }, { type: 'turn-away', identity: 'bob' }]);
  shown.setOpen(false);
  me.permissions = {};
  call.dispatchEvent(new CustomEvent('permissions', { detail: { permissions: {} } }));
  ok($('#door').hidden && $('#waiting-count').hidden, 'nothing is left of it');
});

test('a room with a door is asked for again and again, in sight only', async (t) => {
  const { hear, take, hide } = await panel(t);
  take();
  hear(waiting());
  await eventually(() => take().length > 0, 'asked again');
  hear(waiting());
  hide(true);
  await new Promise((resolve) => setTimeout(resolve, 3500));
  equal(take(), [], 'out of sight');
  hide(false);
  document.dispatchEvent(new Event('visibilitychange'));
  equal(take(), [{ type: 'door' }], 'in sight again');
});
