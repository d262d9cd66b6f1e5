// The People panel: one row a person, whatever the number of devices.

import { People } from '/page/people.js';
import { persons, worst } from '/page/persons.js';
import { equal, ok, test } from './harness.js';

const entry = (peer, identity, more = {}) => ({ peer, identity, name: identity.toUpperCase(), audioMuted: true, videoMuted: true, ...more });

test('devices of one identity are one person', () => {
  const all = persons([
    entry('a1', 'ann', { audioMuted: false, handRaised: 7 }), entry('b1', 'bob'), entry('a2', 'ann', { handRaised: 5, moderator: true, screenShared: true }), entry('a3', 'ann'),
  ], 'a2');
  equal(all.map(({ identity, peer, peers }) => [identity, peer, peers]), [['ann', 'a2', ['a1', 'a2', 'a3']], ['bob', 'b1', ['b1']]]);
  const [{ audioMuted, videoMuted, screenShared, handRaised, moderator }] = all;
  equal([audioMuted, videoMuted, screenShared, handRaised, moderator], [false, true, true, 5, true]);
  equal(['good', 'weak', 'lost', null].map((quality) => worst(['x', 'y', 'z'], new Map([['x', 'good'], ['y', quality]]))), ['good', 'weak', 'lost', 'good']);
  equal(worst(['x'], new Map()), null);
});

test('the panel shows two tabs as one person, and what a host does is done to both', async ({ cleanup }) => {
  const index = new DOMParser().parseFromString(await (await fetch('/')).text(), 'text/html');
  const stage = document.importNode(index.querySelector('#stage'), true);
  stage.hidden = stage.querySelector('#side').hidden = stage.querySelector('#panel-people').hidden = false;
  document.body.append(stage);
  const sent = [];
  const call = Object.assign(new EventTarget(), {
    peer: 'h1', audience: 0, roster: [entry('h1', 'host', { moderator: true }), entry('a1', 'ann'), entry('a2', 'ann', { audioMuted: false })],
    isMuted: () => true, moderation: { allowed: true, act: (...what) => sent.push(what) },
  });
  cleanup(() => {
    call.dispatchEvent(new Event('left'));
    stage.remove();
  });
  const people = new People(call);
  const rows = () => [...stage.querySelectorAll('#people .person')].map((row) => [row.querySelector('.who').textContent, row.querySelector('.ago')?.textContent ?? '']);
  people.show(new Map());
  equal([rows(), stage.querySelector('#people-title').textContent], [[['HOST (you)', ''], ['ANN', '2 devices']], '2 people']);
  const audience = stage.querySelector('#audience');
  ok(audience.hidden, 'a small room has no audience');
  call.audience = 1240;
  people.show(new Map());
  equal([audience.hidden, audience.textContent, stage.querySelector('#people-title').textContent], [false, '1,240 more are watching', '1,242 people']);
  call.audience = 0;
  const more = stage.querySelectorAll('#people .more')[1];
  more.focus();
  more.click();
  [...document.querySelectorAll('[role=menuitem]')].find(({ textContent }) => textContent === 'Remove from call').click();
  equal(sent.map(([act, peer]) => [act, peer]), [['remove', 'a1'], ['remove', 'a2']]);
  call.roster = call.roster.slice(0, 2);
  people.show(new Map());
  equal(rows(), [['HOST (you)', ''], ['ANN', '']]);
  ok(more.isConnected, 'the row stays, with the focus in it');
});
