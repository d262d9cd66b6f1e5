// The chat as the library keeps it.

import { Chat } from '/holdfast/chat.js';
import { equal, eventually, ok, test } from './harness.js';

function chat() {
  const sent = [];
  const changes = [];
  const log = new Chat((message) => sent.push(message), (line) => changes.push(line));
  return { log, sent, changes };
}

test('a line is sent, and known to be said when it comes back', ({ cleanup }) => {
  const { log, sent, changes } = chat();
  cleanup(() => log.close());
  equal(log.say({ peer: 'me', name: 'Me', text: '  ' }), null, 'a blank one');
  log.say({ peer: 'me', name: 'Me', text: ' <b>hello</b> ' });
  equal(sent.map(({ type, text }) => [type, text]), [['chat', '<b>hello</b>']], 'sent');
  equal(log.lines.map(({ text, state, own }) => [text, state, own]), [['<b>hello</b>', 'sending', true]]);
  log.heard({ peer: 'me', name: 'Me', text: '<b>hello</b>', at: 5, id: sent[0].id }, true);
  equal(log.lines.map(({ state, at }) => [state, at]), [['sent', 5]]);
  equal(changes.map(({ state }) => state), ['sending', 'sent'], 'changes');
});

test('a line that comes twice is one line, and ids of two people are two', () => {
  const { log } = chat();
  for (const peer of ['ada', 'ada', 'bob']) log.heard({ peer, name: peer, text: 'hello', at: 1, id: 'x' }, false);
  equal(log.lines.map(({ peer }) => peer), ['ada', 'bob']);
});

test('a line that a dying node swallowed is said again with the same id', async ({ cleanup }) => {
  const { log, sent } = chat();
  cleanup(() => log.close());
  log.say({ peer: 'me', name: 'Me', text: 'are you there?' });
  await eventually(() => sent.length > 1, 'said again');
  equal(sent[1], sent[0], 'the same message');
  log.heard({ peer: 'me', name: 'Me', text: 'are you there?', at: 9, id: sent[0].id }, true);
  equal(log.lines.map(({ state }) => state), ['sent']);
});

test('old lines are forgotten', () => {
  const { log } = chat();
  for (let i = 0; i < 600; i++) log.heard({ peer: 'ada', name: 'Ada', text: `line ${i}`, at: i, id: `i${i}` }, false);
  ok(log.lines.length === 500 && log.lines[499].text === 'line 599', `${log.lines.length} lines`);
});
