// What the token and the moderators allow, in a whole call against a cluster in the page.

import { joined } from './joined.js';
import { equal, eventually, ok, test } from './harness.js';

test('what the token does not allow is not sent, and is said', async (t) => {
  const { cluster, call, stream } = await joined(t, {}, { sources: ['microphone'], chat: false });
  equal(call.errors, ['not_published'], 'the camera that it came with');
  equal([call.mayPublish('microphone'), call.mayPublish('camera'), call.mayPublish('screen')], [true, false, false]);
  equal([call.isMuted('microphone'), call.isMuted('camera')], [false, true]);
  await call.setMuted('camera', false);
  equal(call.errors, ['not_published', 'not_published']);
  const refused = await call.replaceTrack('screen', stream.getVideoTracks()[0].clone()).then(() => '', (error) => error.code);
  equal(refused, 'not_published');
  equal(call.say('hello'), null);
  equal(call.errors.at(-1), 'not_said');
  equal(call.chat, []);
  call.rename('Grace');
  equal(call.errors.at(-1), 'not_renamed');
  ok(!cluster.heard.some(({ type }) => type === 'rename'), 'no new name was said');
  ok(!cluster.heard.some(({ type, source, muted }) => type === 'chat' || type === 'mute' && source !== 'microphone' && !muted), 'nothing of it was said');
  ok((await call.stats()).outbound.every(({ kind, framesEncoded }) => kind !== 'video' || framesEncoded === 0), 'no picture is sent');
});

test('who is muted by somebody sends nothing, says so, and unmutes itself', async (t) => {
  const { cluster, call } = await joined(t);
  const told = [];
  for (const type of ['muted-by', 'unmute-asked', 'reactions']) call.addEventListener(type, ({ detail }) => told.push([type, detail]));
  const said = () => cluster.heard.filter(({ type, source }) => type === 'mute' && source === 'microphone').map(({ muted }) => muted);
  cluster.say({ type: 'unmute-asked', source: 'microphone', by: 'Ada', epoch: cluster.epoch });
  cluster.say({ type: 'muted-by', source: 'microphone', by: 'Ada', epoch: cluster.epoch });
  await eventually(() => call.isMuted('microphone') && said().at(-1) === true, 'muted');
  cluster.say({ type: 'muted-by', source: 'microphone', by: 'Ada', epoch: cluster.epoch });
  cluster.say({ type: 'unmute-asked', source: 'microphone', by: 'Ada', epoch: cluster.epoch });
  cluster.say({ type: 'reactions', reactions: [{ peer: 'ada', emoji: '👏' }], epoch: cluster.epoch });
  equal(told, [
    ['muted-by', { source: 'microphone', by: 'Ada' }], ['unmute-asked', { source: 'microphone', by: 'Ada' }], ['reactions', { reactions: [{ peer: 'ada', emoji: '👏' }] }],
  ], 'told once, and not asked for what is on');
  await call.setMuted('microphone', false);
  equal(said().at(-1), false);
  // It was muted while its socket was away: it does not say the old word again.
  cluster.resumeReply = { silenced: ['microphone'] };
  const before = said().length;
  cluster.cut();
  await eventually(() => said().length > before, 'said again');
  equal(said().slice(before).includes(false), false);
  ok(call.isMuted('microphone'), 'muted');
});

test('the grant is handed over with a new resume token, and acts are said', async (t) => {
  const { cluster, call } = await joined(t);
  call.moderation.act('mute', 'ada');
  equal([call.moderation.allowed, call.errors], [false, ['not_moderator']]);
  cluster.say({ type: 'permissions', permissions: { publish: true, subscribe: true, chat: true, rename: false, moderate: true }, resume: 'a better one' });
  ok(call.moderation.allowed, 'allowed');
  call.moderation.act('mute', 'ada', 'camera');
  call.moderation.act('mute');
  call.moderation.act('grant', 'ada');
  call.moderation.act('give-up');
  call.moderation.raiseHand(true);
  call.moderation.react('🎉');
  const types = ['moderate', 'hand', 'reaction'];
  equal(cluster.heard.filter(({ type }) => types.includes(type)), [
    { type: 'moderate', act: 'mute', peer: 'ada', source: 'camera' }, { type: 'moderate', act: 'mute', source: 'microphone' },
    { type: 'moderate', act: 'grant', peer: 'ada' }, { type: 'moderate', act: 'give-up' }, { type: 'hand', raised: true }, { type: 'reaction', emoji: '🎉' },
  ]);
  cluster.cut();
  await eventually(() => cluster.heard.some(({ type, resume }) => type === 'resume' && resume === 'a better one'), 'the new token');
});
