// A program that uses all that the library gives to an application. web/declarations_test.go compiles it, and asks for each public name.

import { attach, Call, CallError, canMoveLiveConnection, EMOJIS, Messages, Presence, version } from '@holdfast-rtc/holdfast';
import type {
  Act, CallEvents, CallOptions, CallState, CreateTransform, DataMessage, DataOptions, Deliveries, Delivery, DoorState, Joined, JoinOptions, Line, MessagesEvents, Permissions,
  PresenceEvents, PresenceOptions, PresenceState, RosterEntry, SendOptions, Slot, SlotChange, Source, Speaker, TokenSource, UserPresence, VideoCodec, Want,
} from '@holdfast-rtc/holdfast';

const codec: VideoCodec = 'VP9';
const createTransform: CreateTransform = (side, kind, track) => (side === 'receive' && kind === 'video' && track ? null : {});
const options: CallOptions = {
  audioSlots: 6, videoSlots: 12, simulcast: true, moveLive: canMoveLiveConnection(navigator), videoCodec: codec, scalabilityMode: 'L3T3_KEY', createTransform, data: true,
};
const call = new Call(options);
const shown = new Map<string, HTMLMediaElement>();
const log = (...what: (string | number | boolean | undefined)[]) => console.log(version, ...what);

call.addEventListener('state', ({ detail: { state } }) => {
  const now: CallState = state;
  log(now, call.state === now);
});
call.addEventListener('waiting', ({ detail: { position, reason, estimateMs } }) => log(position, reason, estimateMs));
call.addEventListener('joined', ({ detail }) => {
  const joined: Joined = detail;
  const permissions: Permissions = joined.permissions;
  log(joined.peer, permissions.publish);
});
call.addEventListener('slot', ({ detail }) => {
  const { peer, source, kind, mid, stream, live, paused }: SlotChange = detail;
  const element = shown.get(mid) ?? document.createElement(kind);
  shown.set(mid, element);
  attach(element, stream);
  log(peer, source, live, paused);
});
call.addEventListener('roster', ({ detail: { roster } }) => {
  const wants: Want[] = roster.map(({ peer }: RosterEntry) => ({ peer, source: 'camera', width: 640, height: 360 }));
  call.setView(wants);
});
call.addEventListener('lacks', ({ detail: { lacks } }) => log(lacks[0]?.codec, call.lacks.length));
call.addEventListener('undecodable', ({ detail: { undecodable } }) => undecodable.forEach(({ peer, source, codec }) => log(peer, source, codec, call.undecodable.length)));
call.addEventListener('audience', ({ detail: { audience } }) => log(audience === call.audience));
call.addEventListener('limited', ({ detail: { limited } }) => log(limited === call.limited));
call.addEventListener('speakers', ({ detail: { speakers } }) => speakers.forEach(({ peer, level }: Speaker) => log(peer, level)));
call.addEventListener('chat', ({ detail: { line } }) => {
  const last: Line | undefined = call.chat.at(-1);
  log(line.id, last?.state);
});
call.addEventListener('data', ({ detail }) => {
  const { peer, identity, topic, payload, reliable }: DataMessage = detail;
  const answer: DataOptions = { to: [peer], topic, reliable };
  log(identity, call.data.send(payload, answer));
});
call.addEventListener('data-open', ({ detail: { open } }) => log(open === call.data.open));
call.addEventListener('reactions', ({ detail: { reactions } }) => reactions.forEach(({ peer, emoji }) => log(peer, emoji)));
call.addEventListener('muted-by', ({ detail: { source, by } }) => log(source, by));
call.addEventListener('unmute-asked', ({ detail: { source, by } }) => log(source, by));
call.addEventListener('permissions', ({ detail: { permissions } }) => log(permissions.moderate, call.moderation.allowed));
call.addEventListener('door', ({ detail: { door } }) => {
  const latest: DoorState | null = call.moderation.door.latest;
  log(door.inside, latest?.length);
});
call.addEventListener('presence', ({ detail: { changes } }) => changes.forEach(({ user, state, since, lastSeen }: UserPresence) => log(user, state, since, lastSeen)));
call.addEventListener('room-metadata', ({ detail: { metadata } }) => log(metadata === call.roomMetadata));
call.addEventListener('stalled', ({ detail: { silentMs } }) => log(silentMs));
call.addEventListener('migration', ({ detail }) => log(detail.node, detail.phase === 'done' ? detail.gapMs : detail.phase));
call.addEventListener('continued', ({ detail: { node, epoch } }) => log(node, epoch));
call.addEventListener('mended', ({ detail: { how, gapMs, lost } }) => log(how, gapMs, lost.length));
call.addEventListener('error', ({ detail }) => {
  const error: CallError = detail;
  log(error.name, error.code, error.message, error.retryable, error.retryAfterMs, error.about, CallError.of(error) instanceof Error);
});
const onLeft = ({ detail: { code, message } }: CustomEvent<CallEvents['left']>) => log(code, message);
call.addEventListener('left', onLeft, { once: true });
call.removeEventListener('left', onLeft);

async function run(stream: MediaStream) {
  const token: TokenSource = async () => (await fetch('/token')).text();
  const join: JoinOptions = { url: new URL('https://video.example.org'), token, room: 'hall', name: 'Ada', wait: true, stream, joinLimitMs: 5000 };
  call.prepare();
  const { identity } = await call.join(join);
  log(identity === call.identity, call.peer, call.room, call.node, call.epoch, call.roster.length, call.slots.map(({ mid }: Slot) => mid).join());
  const sources: Source[] = ['microphone', 'camera', 'screen', 'screen-audio'];
  for (const source of sources) {
    if (!call.mayPublish(source) || call.isMuted(source)) continue;
    await call.setMuted(source, true);
    await call.replaceTrack(source, stream.getTracks()[0] ?? null);
  }
  const line = call.say('hello');
  log(line?.text, call.stream('p-1', 'camera').active);
  call.rename('Grace');
  call.watch(new Set(['grace']));
  log(call.watched[0]?.state);
  call.setUnreadable('p-1', 'camera', true);
  const { moderation } = call;
  const act: Act = 'ask-unmute';
  moderation.act(act, 'p-1', 'camera');
  moderation.raiseHand(true);
  moderation.react(EMOJIS[0]);
  moderation.door.ask();
  moderation.door.set({ cap: 5, closed: false });
  moderation.door.letIn('grace');
  moderation.door.turnAway('grace');
  const sending: SendOptions = { kind: 'app' };
  const became: Deliveries = await call.sendToAll({ poll: 1 }, sending);
  for (const [user, outcome] of became) log(user, outcome instanceof CallError ? outcome.code : outcome);
  const stats = await call.stats();
  log(stats?.rttMs, stats?.pcId);
  call.leave({ back: true });
}

async function online() {
  const presence = new Presence();
  const messages: Messages = presence.messages;
  presence.addEventListener('state', ({ detail: { state } }: CustomEvent<PresenceEvents['state']>) => {
    const now: PresenceState = state;
    log(now === presence.state, presence.identity);
  });
  presence.addEventListener('presence', ({ detail: { changes } }) => log(changes.length, presence.watched.length));
  presence.addEventListener('error', ({ detail }) => log(detail.code));
  presence.addEventListener('closed', ({ detail: { code } }) => log(code));
  messages.addEventListener('message', ({ detail: { from, name, kind, body, room, at } }: CustomEvent<MessagesEvents['message']>) => log(from, name, kind, String(body), room, at));
  messages.addEventListener('accepted', ({ detail: { to, seq } }) => log(to, seq));
  const options: PresenceOptions = { url: 'https://video.example.org', token: 'a token', connectLimitMs: 5000 };
  presence.watch(['ada']);
  await presence.connect(options);
  const delivery: Delivery = await messages.send('grace', 'hello');
  const each = await messages.sendToEach(['ada', 'grace'], { a: 1 }, { kind: 'app' });
  log(delivery, each.size, messages.scope);
  presence.close();
}

navigator.mediaDevices.getUserMedia({ audio: true, video: true }).then(run).then(online, (error: unknown) => log(error instanceof CallError ? error.code : String(error)));
