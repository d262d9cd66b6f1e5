// One room: who is in it and how well they receive, why it lives where it does, its door, and what an operator may order.

import { make, who } from '../page/elements.js';
import { heat } from './node.js';
import { ask, attempt, refusalText } from './question.js';
import { repeat } from './repeat.js';
import { roomPath } from './server.js';
import { act, facts, openSheet } from './sheet.js';
import { ago, bits, clock, lasted, number, percent, say } from './words.js';

/** @typedef {{mid: string, kind: string, peer: string, source: string, paused: boolean, waits: string, target: string, sent: string}} Slot */
/** @typedef {{source: string, rid: string, muted: boolean, heardMsAgo: number, bitsPerSecond: number, height: number}} Track */
/** @typedef {{peer: string, identity: string, node?: string, attached: boolean, connected: boolean, signaling: string, transport?: string, roundTripMs?: number, lostPermille?: number, media?: {estimateBitsPerSecond: number, shortBitsPerSecond: number, slots: Slot[], tracks: Track[]}}} HeldPeer */
/** @typedef {{packets: number, lost: number, layers: number, known: number}} Crossing */
/** @typedef {{node: string, people: number, egressBitsPerSecond: number, fill?: number, why?: string, stays?: string, link?: {up: boolean, sent: Crossing, received: Crossing}}} Member */
/** @typedef {{room: string, node: string, epoch: number, peers: HeldPeer[], packetsForwarded: number, packetsDropped: number, egressBitsPerSecond: number, members?: Member[]}} HeldRoom */
/** @typedef {{node: string, share: number, chosen: boolean, why: string}} Step */
/** @typedef {{hash: number, state: string, owner: string, pin: {node: string}, walk: Step[], claimed?: string, claimedWhy?: string, history: {at: string, from: string, to: string, why: string}[]}} Explanation */
/** @typedef {{cap?: number, closed: boolean, inside: number, length: number, line: {identity: string, name?: string, since?: number}[]}} Door */

const EVERY_MS = 2000;
/** Steps of the walk that are shown; beyond, the nodes are alike. */
const STEPS = 12;
/** What lifts a cap: a cap of 0 would let nobody in. */
const NO_CAP = -1;

/**
 * @param {string} room
 * @param {{server: import('./server.js').Server, ring: import('./ring-view.js').RingView, mediaNodes: () => string[]}} options
 */
export function openRoom(room, { server, ring, mediaNodes }) {
  const [note, acts, list] = [make('p', 'about'), make('div', 'acts'), make('dl', 'facts')];
  const [membersTitle, members] = [make('h3', '', say('members')), make('ul', 'people-list')];
  const [peopleTitle, people] = [make('h3', '', say('in.the.room')), make('ul', 'people-list')];
  const [lineTitle, line] = [make('h3', '', say('in.line')), make('ul', 'people-list')];
  const [whyTitle, walk] = [make('h3', '', say('why.here')), make('ol', 'walk')];
  const history = make('ul', 'history');
  let open = true;
  /** @type {Door} */
  let door = { closed: false, inside: 0, length: 0, line: [] };
  openSheet(room, [note, acts, list, membersTitle, members, peopleTitle, people, lineTitle, line, whyTitle, walk, history], () => {
    open = false;
    ring.mark(null);
  });
  const query = `room=${encodeURIComponent(room)}`;
  let holder = '';
  /** @type {string[]} */
  let carriers = [];

  acts.append(
    act(say('move'), async () => {
      const others = mediaNodes().filter((node) => node !== holder);
      const answer = await ask({
        title: say('move.title', { room }), text: say('move.text'), yes: say('move'),
        choice: { label: say('move.to'), options: [['', say('move.anywhere')], ...others.map((node) => /** @type {[string, string]} */ ([node, node]))] },
      });
      if (answer) await attempt(() => server.order('POST', `${roomPath(room)}/move`, answer.choice ? { node: answer.choice } : {}), say('move.done', { room }));
      again();
    }),
    act(say('spread'), async () => {
      const others = mediaNodes().filter((node) => !carriers.includes(node));
      const answer = await ask({
        title: say('spread.title', { room }), text: say('spread.text'), yes: say('spread'),
        choice: { label: say('move.to'), options: [['', say('move.anywhere')], ...others.map((node) => /** @type {[string, string]} */ ([node, node]))] },
      });
      if (answer) await attempt(() => server.order('POST', `${roomPath(room)}/spread`, answer.choice ? { node: answer.choice } : {}), say('spread.done', { room }));
      again();
    }),
    act(say('cap'), async () => {
      const answer = await ask({ title: say('cap.title', { room }), text: say('cap.text'), yes: say('cap.set'), number: { label: say('cap.number'), value: String(door.cap ?? '') } });
      if (answer) await attempt(() => server.order('PATCH', `door?${query}`, { cap: Number(answer.number) || NO_CAP }), say('cap.done', { room }));
      again();
    }),
    act(say('close.door'), async () => {
      const closed = !door.closed;
      const answer = await ask({ title: say(closed ? 'close.door.title' : 'open.door.title', { room }), text: say(closed ? 'close.door.text' : 'open.door.text'), yes: say(closed ? 'close.door' : 'open.door') });
      if (answer) await attempt(() => server.order('PATCH', `door?${query}`, { closed }), say(closed ? 'close.door.done' : 'open.door.done', { room }));
      again();
    }),
  );
  const doorAct = /** @type {HTMLButtonElement} */ (acts.lastElementChild);
  acts.append(act(say('end.call'), async () => {
    const answer = await ask({ title: say('end.call.title', { room }), text: say('end.call.text'), yes: say('end.call'), danger: true });
    if (answer) await attempt(() => server.order('DELETE', roomPath(room)), say('end.call.done', { room }));
    again();
  }, true));

  /** @param {Member} member */
  const gather = async ({ node }) => {
    const answer = await ask({ title: say('gather.title', { room, node }), text: say('gather.text'), yes: say('gather') });
    if (answer) await attempt(() => server.order('POST', `${roomPath(room)}/gather`, { node }), say('gather.done', { room, node }));
    again();
  };

  /** @param {HeldPeer} peer */
  const remove = async ({ identity }) => {
    const answer = await ask({ title: say('remove.title', { person: identity }), text: say('remove.text', { room }), yes: say('remove'), danger: true });
    if (answer) await attempt(() => server.order('DELETE', `peers?${query}&identity=${encodeURIComponent(identity)}`), say('remove.done', { person: identity }));
    again();
  };

  const paint = (/** @type {{explanation?: Explanation, heldBy: HeldRoom[], unreachable: string[]}} */ answer) => {
    const { explanation, heldBy, unreachable } = answer;
    const held = heldBy.find(({ node }) => node === explanation?.pin.node) ?? heldBy[0];
    holder = held?.node ?? '';
    note.textContent = held ? say(heldBy.length > 1 ? 'room.on.both' : 'room.on', { node: heldBy.map(({ node, members = [] }) => [node, members.length > 1 ? `+${members.length - 1}` : ''].filter(Boolean).join(' ')).join(' + ') }) : say('room.nowhere');
    note.dataset.state = held ? 'up' : 'dead';
    facts(list, [
      [say('state'), explanation?.state ?? ''],
      [say('egress'), held ? bits(held.egressBitsPerSecond) : ''],
      [say('packets.forwarded'), held ? number(held.packetsForwarded) : ''],
      [say('packets.dropped'), held ? number(held.packetsDropped) : ''],
      [say('door'), door.closed ? say('door.closed') : door.cap === undefined ? say('door.open') : say('door.cap', { inside: door.inside, cap: door.cap })],
      [say('claimed'), explanation?.claimed && held ? `${clock(new Date(explanation.claimed))} (${ago(new Date(explanation.claimed))})` : ''],
      [say('claimed.why'), explanation?.claimedWhy ?? ''],
      [say('epoch'), held ? String(held.epoch) : ''],
      [say('not.answered'), unreachable.join(', ')],
    ]);
    doorAct.textContent = say(door.closed ? 'open.door' : 'close.door');
    const carried = held?.members ?? [];
    carriers = carried.length > 0 ? carried.map(({ node }) => node) : [holder];
    membersTitle.hidden = members.hidden = carried.length < 2;
    paintList(members, carried, (member) => memberRow(member, () => gather(member)), ({ node }) => node);
    const peers = heldBy.flatMap((one) => one.peers);
    const names = new Map(peers.map(({ peer, identity }) => [peer, identity]));
    paintList(people, peers, (peer) => personRow(peer, names, () => remove(peer)), ({ peer }) => peer);
    lineTitle.hidden = line.hidden = door.line.length === 0;
    paintList(line, door.line, (waiting) => {
      const item = make('li', 'person');
      const header = make('div', 'person-head');
      header.append(who(waiting.name ?? waiting.identity), make('span', 'soft', waiting.since ? ago(new Date(waiting.since)) : ''));
      item.append(header);
      return item;
    }, ({ identity }) => identity);
    whyTitle.hidden = walk.hidden = !explanation;
    if (!explanation) return;
    ring.mark({ name: room, hash: explanation.hash });
    walk.replaceChildren(...explanation.walk.slice(0, STEPS).map((step) => walkRow(step, explanation.pin.node)));
    history.replaceChildren(...[...explanation.history].reverse().map(({ at, from, to, why }) => make('li', 'soft', say('moved.once', { at: clock(new Date(at)), from, to, why }))));
  };

  const again = repeat(() => EVERY_MS, async () => {
    if (!open) return;
    try {
      door = await server.ask(`door?${query}`);
    } catch {
      // The store is silent: what was known of the door stays.
    }
    try {
      const answer = await server.ask(`${roomPath(room)}?media`);
      if (open) paint(answer);
    } catch (error) {
      note.textContent = refusalText(error);
      note.dataset.state = 'dead';
    }
  });
}

/**
 * Keeps the rows of what stays, and so the focus in them.
 * @template T
 * @param {HTMLElement} list
 * @param {T[]} items
 * @param {(item: T) => HTMLElement} row
 * @param {(item: T) => string} keyOf
 */
function paintList(list, items, row, keyOf) {
  const focused = document.activeElement?.closest('[data-key]')?.getAttribute('data-key');
  list.replaceChildren(...items.map((item) => {
    const made = row(item);
    made.dataset.key = keyOf(item);
    return made;
  }));
  if (focused !== null && focused !== undefined) {
    const [same] = [...list.children].filter((child) => child.getAttribute('data-key') === focused);
    same?.querySelector('button')?.focus({ preventScroll: true });
  }
}

/**
 * @param {Member} member
 * @param {() => void} onGather
 */
function memberRow({ node, people, egressBitsPerSecond, fill = 0, why = '', stays = '', link }, onGather) {
  const item = make('li', 'person');
  const header = make('div', 'person-head');
  const chip = make('span', 'chip', say(link ? (link.up ? 'member.up' : 'member.cut') : 'member.holds'));
  chip.dataset.state = link && !link.up ? 'draining' : 'up';
  header.append(make('span', 'who', node), chip);
  if (link) header.append(act(say('gather'), onGather));
  const load = make('div', 'step');
  const meter = make('span', 'track');
  meter.style.setProperty('--part', String(Math.min(fill, 1)));
  meter.dataset.heat = heat(fill);
  load.append(make('span', '', say('member.people', { count: people })), meter, make('span', 'figure', percent(fill)));
  item.append(header, load, make('p', 'soft', [
    bits(egressBitsPerSecond),
    link ? say('member.layers', { sent: number(link.sent.layers), received: number(link.received.layers) }) : '',
    link ? say('member.loss', { part: percent(link.sent.lost / Math.max(link.sent.packets, 1)) }) : '',
  ].filter(Boolean).join(' · ')));
  if (why || stays) item.append(make('p', 'soft', [why, stays].filter(Boolean).join(' · ')));
  return item;
}

/**
 * @param {HeldPeer} peer
 * @param {Map<string, string>} names identities by peer
 * @param {() => void} onRemove
 */
function personRow(peer, names, onRemove) {
  const item = make('li', 'person');
  const header = make('div', 'person-head');
  const state = peer.connected ? 'up' : peer.attached ? 'draining' : 'dead';
  const chip = make('span', 'chip', say(peer.connected ? 'person.connected' : peer.attached ? 'person.connecting' : 'person.away'));
  chip.dataset.state = state;
  header.append(who(peer.identity), chip, act(say('remove'), onRemove, true));
  const path = make('p', 'soft', [
    peer.node ? say('person.media', { node: peer.node }) : '',
    peer.signaling ? say('person.at', { node: peer.signaling }) : '',
    peer.transport?.toUpperCase() ?? '',
    peer.roundTripMs ? say('person.rtt', { time: lasted(peer.roundTripMs) }) : '',
    peer.transport ? say('person.loss', { part: percent((peer.lostPermille ?? 0) / 1000) }) : '',
    peer.media && peer.media.estimateBitsPerSecond > 0 ? say('person.estimate', { bits: bits(peer.media.estimateBitsPerSecond) }) : '',
    peer.media && peer.media.shortBitsPerSecond > 0 ? say('person.short', { bits: bits(peer.media.shortBitsPerSecond) }) : '',
  ].filter(Boolean).join(' · '));
  item.append(header, path);
  if (!peer.media) return item;
  const streams = make('ul', 'streams');
  for (const track of peer.media.tracks) {
    const silent = track.heardMsAgo < 0 || track.heardMsAgo > 3000;
    const text = [sourceName(track.source), track.rid && track.rid !== '-' ? say('layer', { rid: track.rid }) : '', track.height > 0 ? say('lines', { height: track.height }) : '',
      track.muted ? say('muted') : silent ? say('silent') : bits(track.bitsPerSecond)].filter(Boolean).join(' · ');
    const entry = make('li', 'stream sends', text);
    entry.dataset.state = track.muted || silent ? 'off' : 'on';
    streams.append(entry);
  }
  for (const slot of peer.media.slots) {
    if (!slot.peer) continue;
    const name = names.get(slot.peer) ?? slot.peer;
    const what = say('receives', { person: name, source: sourceName(slot.source) });
    const how = slot.waits !== '' ? slot.waits : slot.target && slot.target !== '-' ? (slot.sent === slot.target || slot.sent === '' ? say('layer', { rid: slot.target }) : say('layer.of', { rid: slot.sent, target: slot.target })) : '';
    const entry = make('li', 'stream gets', [what, how].filter(Boolean).join(' · '));
    entry.dataset.state = slot.paused ? 'off' : slot.waits !== '' ? 'waits' : 'on';
    streams.append(entry);
  }
  item.append(streams);
  return item;
}

/** @param {string} source */
function sourceName(source) {
  switch (source) {
    case 'microphone': return say('source.microphone');
    case 'camera': return say('source.camera');
    case 'screen': return say('source.screen');
    case 'screen-audio': return say('source.screen-audio');
    default: return source;
  }
}

/**
 * @param {Step} step
 * @param {string} holder
 */
function walkRow(step, holder) {
  const item = make('li', step.node === holder ? 'step holds' : 'step');
  const meter = make('span', 'track');
  meter.style.setProperty('--part', String(Math.min(step.share, 1)));
  meter.dataset.heat = heat(step.share);
  item.append(make('span', 'name', step.node), meter, make('span', 'figure', percent(step.share)), make('span', 'soft why', step.why));
  return item;
}
