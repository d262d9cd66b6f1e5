// What the operator's page makes of the cluster's events, and its rows.

import { Failovers, sum } from '/operator/failovers.js';
import { heat, isGone, withState } from '/operator/node.js';
import { Rows } from '/operator/rows.js';
import { equal, ok, test } from './harness.js';

const at = (ms) => new Date(1795783230000 + ms).toISOString();
const down = { id: '1-0', at: at(0), kind: 'node_down', node: 'sfu-2', role: 'sfu', cause: 'proof: stream broken, control refused' };
const rehomed = (room, ms) => ({ id: '2-0', at: at(ms), kind: 'room_rehomed', room, from: 'sfu-2', to: 'sfu-1' });
const back = (room, ms, peers, count, worstGapMs) => ({ id: '3-0', at: at(ms), kind: 'room_back', node: 'signaling-1', room, peers, back: count, worstGapMs });

test('a failover is the death, its rooms and who came back, in whatever order the first two are told', () => {
  for (const first of [[down, rehomed('hall', 2)], [rehomed('hall', 0), { ...down, at: at(2) }]]) {
    const failovers = new Failovers(10);
    for (const event of [...first, rehomed('cellar', 3), back('hall', 150, 2, 2, 140), back('hall', 160, 1, 1, 150), back('cellar', 170, 3, 1, 900), back('attic', 170, 1, 1, 1)]) failovers.add(event);
    equal(failovers.list.length, 1);
    equal(failovers.list[0].evidence, down.cause);
    equal(sum(failovers.list[0]), { rooms: 2, people: 6, back: 4, worstGapMs: 900 });
    equal(failovers.list[0].gaps, [{ ms: 140, people: 2 }, { ms: 150, people: 1 }, { ms: 900, people: 1 }]);
  }
});

test('the same node may die again', () => {
  const failovers = new Failovers(2);
  for (const ms of [0, 70_000, 140_000]) failovers.add({ ...down, at: at(ms) });
  failovers.add(rehomed('hall', 140_010));
  equal(failovers.list.map(({ rooms }) => rooms.size), [0, 1], 'the oldest is forgotten');
  equal(failovers.add({ ...down, role: 'signaling', node: 'signaling-1' }), undefined, 'a signaling node has no rooms');
});

test('a node has one state, and a load its colour', () => {
  const node = { state: 'up', role: 'sfu', draining: true, suspect: false, unreachable: false, limitedSeconds: 0 };
  const state = (changes) => withState({ ...node, ...changes }).state;
  equal([state({}), state({ suspect: true }), state({ state: 'dead' }), state({ draining: false, limitedSeconds: 3 })], ['draining', 'suspect', 'dead', 'limited']);
  equal([isGone(withState({ ...node, state: 'left' })), heat(0.2), heat(0.7), heat(0.9)], [true, 'good', 'fair', 'bad']);
});

test('of a hundred thousand rows those in sight are in the document, and the arrows go on beyond them', async () => {
  const scroller = document.createElement('div');
  scroller.style.cssText = 'position: relative; height: 200px; overflow-y: auto';
  document.body.append(scroller);
  const make = () => {
    const row = document.createElement('div');
    row.style.cssText = 'position: absolute; top: 0';
    row.append(document.createElement('button'));
    return row;
  };
  const rows = new Rows(scroller, { height: 20, make, fill: (row, index) => { row.firstChild.textContent = `row ${index}`; } });
  rows.show(100_000);
  const texts = () => [...scroller.querySelectorAll('button')].filter((button) => !button.parentElement.hidden).map((button) => button.textContent);
  ok(texts().includes('row 0') && texts().length < 30, texts().join());
  scroller.scrollTop = 50_000 * 20;
  await new Promise((resolve) => { requestAnimationFrame(() => requestAnimationFrame(resolve)); });
  ok(texts().includes('row 50000') && texts().includes('row 50009') && texts().length < 30, texts().join());
  const focused = [...scroller.querySelectorAll('button')].find((button) => button.textContent === 'row 50009');
  focused.focus();
  for (let step = 0; step < 5; step++) document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowDown', bubbles: true }));
  equal(document.activeElement.textContent, 'row 50014');
  rows.show(3);
  equal(texts().sort(), ['row 0', 'row 1', 'row 2']);
  scroller.remove();
});
