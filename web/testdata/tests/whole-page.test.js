// What happens between the lobby and the stage, in the whole page.

import { equal, eventually, ok, test } from './harness.js';
import { enter, enterElsewhere, openPage } from './whole-page.js';

test('who leaves an encrypted call and joins it again has the key of the others, and a new one in another room', async (t) => {
  const opened = await openPage(t);
  const { view, $ } = opened;
  const key = () => view.history.state.key;
  await eventually(() => !$('#encrypt-choice').hidden, 'a key is offered');
  $('#encrypt').click();
  await enter(opened);
  const first = key();
  ok(first.length > 20, 'a key was made');
  $('#leave').click();
  await eventually(() => !$('#ended').hidden, 'left');
  $('#rejoin').click();
  await eventually(() => !$('#stage').hidden, 'in the call again');
  equal(key(), first);
  await enterElsewhere(opened, 'another');
  ok(key() !== first, 'another room has another key');
});

test('without a link that could carry it no key is offered, and no button promises a link', async (t) => {
  document.cookie = 'without-invite=1; path=/';
  t.cleanup(() => { document.cookie = 'without-invite=; path=/; max-age=0'; });
  const opened = await openPage(t);
  const { $, notices } = opened;
  ok($('#encrypt-choice').hidden, 'no key');
  await enter(opened);
  await eventually(() => $('#alone-text').textContent === 'No one else is here yet. Invite people from the app you came from.', 'what to do instead');
  equal([$('#invite').hidden, $('#alone-copy').hidden, notices()], [true, true, []]);
  ok($('#encrypt-choice').hidden, 'no key, after the answer');
});

test('an invitation to an encrypted call has its key, and says so', async (t) => {
  const key = 'a'.repeat(43);
  const opened = await openPage(t, {}, { key });
  const { $ } = opened;
  await enter(opened);
  await eventually(() => !$('#invite').hidden, 'an invitation');
  $('#invite').click();
  equal([$('#panel-invite').hidden, $('#invite-link').value, $('#ringing').hidden], [false, `https://app.example.org/join/r#key=${key}`, true]);
  ok($('#invite-how').textContent.includes('the key of this call'), $('#invite-how').textContent);
});

test('a key that is kept over a reload, or stands in the link, is that of its room and of no other', async (t) => {
  const key = 'a'.repeat(43);
  let opened = await openPage(t, {}, { key });
  const kept = () => opened.view.history.state.key;
  for (const how of ['by the link', 'after a reload']) {
    ok(opened.$('#encrypt').checked, how);
    await enter(opened);
    equal(kept(), key, how);
    opened = await opened.reload();
  }
  await enter(opened);
  await enterElsewhere(opened, 'another');
  const other = kept();
  ok(other !== key, 'another room has another key');
  opened = await opened.reload();
  await enter(opened);
  equal(kept(), other, 'and keeps it');
  opened.$('#leave').click();
  await eventually(() => !opened.$('#ended').hidden, 'left');
  opened.$('#encrypt').click();
  await enterElsewhere(opened, 'third');
  opened = await opened.reload();
  equal(opened.$('#encrypt').checked, false, 'a room that was entered without one');
});

test('the key of a link stays that of its room where another one is entered in the clear', async (t) => {
  let opened = await openPage(t, {}, { key: 'a'.repeat(43) });
  ok(opened.$('#encrypt').checked, 'the key of the link');
  opened.$('#encrypt').click();
  opened.$('#room').value = 'another';
  await enter(opened);
  opened = await opened.reload();
  equal(opened.$('#encrypt').checked, false, 'after a reload');
});

test('what is found before one is in the call again is said there, and what passed is not', async (t) => {
  const opened = await openPage(t);
  const { cluster, view, $, notices } = opened;
  await enter(opened);
  $('#leave').click();
  await eventually(() => !$('#ended').hidden, 'left');
  view.navigator.mediaDevices.getUserMedia = async () => {
    throw new view.DOMException('staged', 'NotReadableError');
  };
  cluster.joinError = { code: 'no_capacity', message: 'Try again.', retryable: true, retryAfterMs: 50 };
  $('#rejoin').click();
  await eventually(() => !$('#problem').hidden, 'why it takes so long');
  cluster.joinError = null;
  await eventually(() => !$('#stage').hidden, 'in the call again');
  equal(notices().map((text) => text.replace(/\..*/, '')).sort(), ['Another program is using your camera', 'Another program is using your microphone']);
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

test('a microphone that is lost in a call is said until it is back, and is tried again with one click', async (t) => {
  const opened = await openPage(t);
  const { view, $, notices } = opened;
  await enter(opened);
  const gone = (text) => text.startsWith('Your microphone was disconnected.');
  const lose = () => {
    const [track] = $('#preview').srcObject.getAudioTracks();
    track.stop();
    track.dispatchEvent(new Event('ended'));
    return track;
  };
  const lost = lose();
  await eventually(() => notices().some(gone), 'said');
  const { getUserMedia } = view.navigator.mediaDevices;
  view.navigator.mediaDevices.getUserMedia = async () => {
    throw new view.DOMException('staged', 'NotReadableError');
  };
  const retry = () => [...$('#notices').querySelectorAll('button')].find(({ textContent }) => textContent === 'Try again');
  retry().click();
  await eventually(() => notices().some((text) => text.startsWith('Another program is using your microphone.')), 'why it is not back');
  equal(notices().filter(gone), [], 'said once');
  view.navigator.mediaDevices.getUserMedia = getUserMedia;
  retry().click();
  await eventually(() => $('#preview').srcObject.getAudioTracks()[0]?.readyState === 'live', 'back');
  ok($('#preview').srcObject.getAudioTracks()[0] !== lost, 'another track');
  equal([notices(), retry()], [[], undefined]);
  lose();
  await eventually(() => notices().some(gone), 'said again');
  $('.controls [data-toggle=microphone]').click();
  await eventually(() => $('#preview').srcObject.getAudioTracks()[0]?.readyState === 'live', 'back by its own button');
  equal(notices(), []);
});

test('a microphone that is lost while it is off is not said', async (t) => {
  const opened = await openPage(t);
  const { $, notices } = opened;
  await enter(opened);
  $('.controls [data-toggle=microphone]').click();
  const [track] = $('#preview').srcObject.getAudioTracks();
  await eventually(() => !track.enabled, 'off');
  track.dispatchEvent(new Event('ended'));
  await eventually(() => $('#preview').srcObject.getAudioTracks().length === 0, 'lost');
  equal(notices(), []);
});

test('a call that cannot be made is said, and the lobby is free again', async (t) => {
  const { view, $ } = await openPage(t);
  const broken = () => {
    throw new Error('staged');
  };
  Object.assign(view.crypto, { randomUUID: broken, getRandomValues: broken });
  $('#enter').click();
  await eventually(() => !$('#problem').hidden, 'said', 10000);
  ok($('#problem').textContent.startsWith('You could not join the call.') && !$('#enter').disabled, $('#problem').textContent);
});

test('who has to wait in line for a call that went on reads the place there, and may stop waiting', async (t) => {
  const opened = await openPage(t);
  const { cluster, page, $, notices } = opened;
  await enter(opened);
  equal(page.title, 'r · Holdfast');
  const expire = async () => {
    const joins = () => cluster.heard.filter(({ type }) => type === 'join').length;
    const before = joins();
    cluster.waits = true;
    cluster.say({ type: 'bye', code: 'resume_expired', message: 'Join again.' });
    await eventually(() => joins() > before, 'joined anew');
  };
  const place = (position) => cluster.say({ type: 'waiting', position, reason: 'full' });
  await expire();
  place(3);
  await eventually(() => notices().some((text) => text.includes('You are number 3 in line')), 'the place');
  equal([$('#stage').hidden, page.title], [false, 'You are number 3 in line · Holdfast']);
  place(1);
  await eventually(() => notices().some((text) => text.includes('You are next')), 'another place');
  equal(notices().length, 1, 'only the newest');
  cluster.waits = false;
  cluster.hear(cluster.socket, { type: 'join' });
  await eventually(() => page.title === 'r · Holdfast', 'the title of the room');
  equal([notices(), $('#stage').hidden], [[], false]);
  await expire();
  place(2);
  await eventually(() => notices().length === 1, 'in line again');
  [...$('#notices').querySelectorAll('button')].find(({ textContent }) => textContent === 'Stop waiting').click();
  await eventually(() => !$('#ended').hidden && $('#stage').hidden, 'the way out');
  equal(page.title, 'Holdfast');
});

test('outside dev nodes and moves are named in the details alone', async (t) => {
  const opened = await openPage(t);
  const { cluster, $ } = opened;
  await enter(opened);
  await eventually(() => !$('#invite').hidden, 'the configuration');
  // Live it is before the first packet, and a move's gap is that of what was heard.
  await eventually(async () => Object.values((await opened.view.call.stats()).perSlot).some(({ packetsReceived }) => packetsReceived > 25), 'sound');
  cluster.move('n2');
  await eventually(() => /^The call goes on after/.test($('#whisper').textContent), 'told to who hears it', 20000);
  ok(!/n\d/.test(`${$('#status').innerText} ${$('#whisper').textContent}`), $('#status').innerText);
  $('.controls [data-panel=settings]').click();
  $('#details').open = true;
  await eventually(() => /Moves[^]*→\sn2/.test($('#details-list').innerText) && /Server[^]*n2/.test($('#details-list').innerText), 'the details');
});
