// One node, and what an operator may order of it.

import { make } from '../page/elements.js';
import { isGone, shares } from './node.js';
import { ask, attempt } from './question.js';
import { act, facts, openSheet } from './sheet.js';
import { ago, bits, clock, number, percent, say } from './words.js';

/** @typedef {import('./node.js').Node} Node */

/**
 * @param {Node} node
 * @param {{server: import('./server.js').Server, kill: boolean, shareOf: (node: string) => number}} options
 * @returns {(nodes: Node[]) => void} shows what is known now
 */
export function openNode(node, { server, kill, shareOf }) {
  const list = make('dl', 'facts');
  const acts = make('div', 'acts');
  const about = make('p', 'about');
  let open = true;
  openSheet(node.node, [about, acts, list], () => { open = false; });
  const path = `nodes/${encodeURIComponent(node.node)}/drain`;
  const drain = act(say('drain'), async () => {
    const yes = await ask({ title: say('drain.title', { node: node.node }), text: say('drain.text'), yes: say('drain') });
    if (yes) await attempt(() => server.order('POST', path, { keep: true }), say('drain.done', { node: node.node }));
  });
  const undrain = act(say('undrain'), async () => {
    const yes = await ask({ title: say('undrain.title', { node: node.node }), text: say('undrain.text'), yes: say('undrain') });
    if (yes) await attempt(() => server.order('DELETE', path), say('undrain.done', { node: node.node }));
  });
  const end = act(say('kill'), async () => {
    const yes = await ask({ title: say('kill.title', { node: node.node }), text: say('kill.text'), yes: say('kill'), danger: true });
    if (yes) await attempt(() => server.order('POST', `dev/kill?node=${encodeURIComponent(node.node)}`), say('kill.done', { node: node.node }));
  }, true);
  acts.append(drain, undrain, end);
  const paint = (/** @type {Node} */ now) => {
    const { state } = now;
    const media = now.role === 'sfu' && !isGone(now);
    drain.hidden = !media || now.draining;
    undrain.hidden = !media || !now.draining;
    end.hidden = !media || !kill;
    acts.hidden = !media;
    about.textContent = say(`about.${state}`);
    about.dataset.state = state;
    const { bits: bitPart, packets } = shares(now);
    facts(list, [
      [say('role'), say(now.role === 'sfu' ? 'role.sfu' : 'role.signaling')],
      [say('since.gone'), now.at ? `${clock(new Date(now.at))} (${ago(new Date(now.at))})` : ''],
      [say('evidence'), isGone(now) ? now.cause ?? '' : ''],
      [say('version'), now.version],
      [say('boot'), now.boot],
      [say('people'), media ? number(now.peers) : ''],
      [say('rooms'), media ? number(now.rooms) : ''],
      [say('sockets'), now.role === 'signaling' && !isGone(now) ? number(now.sockets) : ''],
      [say('waiting'), now.role === 'signaling' && now.waiting > 0 ? number(now.waiting) : ''],
      [say('egress'), media ? say('of.ceiling', { value: bits(now.egressBitsPerSecond), ceiling: bits(now.ceilingBitsPerSecond), part: percent(bitPart) }) : ''],
      [say('packets'), media ? say('of.ceiling', { value: number(now.egressPacketsPerSecond), ceiling: number(now.ceilingPacketsPerSecond), part: percent(packets) }) : ''],
      [say('floor'), media ? bits(now.floorBitsPerSecond) : ''],
      [say('limited'), now.limitedSeconds > 0 ? say('seconds', { count: now.limitedSeconds }) : ''],
      [say('share.of.ring'), media ? percent(shareOf(now.node)) : ''],
      [say('stalled'), now.stalled > 0 ? number(now.stalled) : ''],
      [say('media.sockets'), now.mediaTold?.join(', ') ?? now.media ?? ''],
      [say('media.silent'), now.mediaSilent?.join(', ') ?? ''],
      [say('control'), now.control ?? ''],
      ['HTTP', now.http ?? ''],
    ]);
  };
  paint(node);
  return (nodes) => {
    // A restarted node has another boot, and is looked at as the same.
    const now = nodes.find(({ node: name, boot }) => name === node.node && boot === node.boot) ?? nodes.find(({ node: name, role }) => name === node.node && role === node.role);
    if (open && now) paint(now);
  };
}
