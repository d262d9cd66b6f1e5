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

/** A browser with these loudspeakers, and what sound is sent to. */
function loudspeakers(view, there) {
  const sinks = [];
  view.HTMLMediaElement.prototype.setSinkId = async (id) => void sinks.push(id);
  view.navigator.mediaDevices.enumerateDevices = async () => there.map((deviceId) => ({ kind: 'audiooutput', deviceId, label: deviceId }));
  return {
    sinks,
    plug: (...now) => {
      there = now;
      view.navigator.mediaDevices.dispatchEvent(new Event('devicechange'));
    },
  };
}

test('sound goes to the system when the chosen loudspeaker is gone, which is said, and to it again when it is back', async (t) => {
  const opened = await openPage(t, { speaker: 'headset' });
  const { view, $, notices } = opened;
  const { sinks, plug } = loudspeakers(view, ['default', 'headset', 'screen']);
  const chosen = () => [...$('#settings-devices select[name=speaker]').options].map(({ value, selected }) => `${value || 'system'}${selected ? '!' : ''}`).join(' ');
  await enter(opened);
  await eventually(() => sinks.at(-1) === 'headset', 'the headset');
  plug('default', 'screen');
  await eventually(() => sinks.at(-1) === '', 'the system');
  await eventually(() => notices().some((text) => text.startsWith('Your speaker was disconnected.')), 'said');
  $('.controls [data-panel=settings]').click();
  await eventually(() => chosen() === 'system! screen', 'what is used is chosen');
  plug('default', 'screen', 'headset');
  await eventually(() => sinks.at(-1) === 'headset', 'the headset again');
  await eventually(() => chosen() === 'system screen headset!', 'chosen again');
  const select = $('#settings-devices select[name=speaker]');
  select.value = '';
  select.dispatchEvent(new Event('change'));
  equal(sinks.at(-1), '', 'the system by choice');
});
