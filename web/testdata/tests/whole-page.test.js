// What happens between the lobby and the stage, in the whole page.

import { equal, eventually, ok, test } from './harness.js';
import { enter, openPage } from './whole-page.js';

test('who leaves an encrypted call and joins it again has the key of the others, and a new one in another room', async (t) => {
  const opened = await openPage(t);
  const { view, $ } = opened;
  const key = () => view.history.state.key;
  $('#encrypt').click();
  await enter(opened);
  const first = key();
  ok(first.length > 20, 'a key was made');
  $('#leave').click();
  await eventually(() => !$('#ended').hidden, 'left');
  $('#rejoin').click();
  await eventually(() => !$('#stage').hidden, 'in the call again');
  equal(key(), first);
  $('#leave').click();
  await eventually(() => !$('#ended').hidden, 'left again');
  $('#elsewhere').click();
  $('#room').value = 'another';
  await enter(opened);
  ok(key() !== first, 'another room has another key');
});
