// The connection in figures, while somebody reads them: the way, the moves, and each stream's layers, size, bitrate and loss.

import { find, make, who } from './elements.js';
import { locale, say } from './words.js';

/** @typedef {import('../holdfast/call.js').Call} Call */
/** @typedef {NonNullable<Awaited<ReturnType<Call['stats']>>>} Stats */
/** @typedef {{title: string, rows: [string, string][]}} Group */

const EVERY_MS = 2000;

/**
 * @param {Call} call
 * @param {() => import('./status.js').Move[]} moves
 * @param {AbortSignal} signal ends it
 */
export function showDetails(call, moves, signal) {
  const [details, list] = [find('#details', HTMLDetailsElement), find('#details-list', HTMLElement)];
  /** @type {Stats | null} */
  let before = null;
  let at = 0;
  const look = async () => {
    if (!details.open || details.offsetParent === null || document.hidden) {
      before = null;
      return;
    }
    const stats = await call.stats();
    const now = performance.now();
    if (!stats || signal.aborted) return;
    const names = new Map(call.roster.map(({ peer, name, identity }) => [peer, name || identity]));
    const [own, ...streams] = detailsOf(stats, before ?? stats, Math.max((now - at) / 1000, 0.001), names);
    list.replaceChildren(...[own, ...movesOf(moves()), ...streams].flatMap(draw));
    [before, at] = [stats, now];
  };
  const timer = setInterval(look, EVERY_MS);
  details.addEventListener('toggle', look, { signal });
  signal.addEventListener('abort', () => clearInterval(timer));
}

/**
 * Pure.
 * @param {import('./status.js').Move[]} moves
 * @returns {Group[]}
 */
function movesOf(moves) {
  const rows = moves.map(({ at, text, means }) => /** @type {[string, string]} */ ([new Date(at).toLocaleTimeString(locale), joined([text, means])]));
  return rows.length > 0 ? [{ title: say('moves'), rows }] : [];
}

/** @param {Group} group */
function draw({ title, rows }) {
  const table = make('dl', '');
  table.append(...rows.map(([name, text]) => {
    const row = make('div', '');
    row.append(make('dt', '', name), make('dd', '', text));
    return row;
  }));
  const head = make('h3', '');
  head.append(who(title));
  return [head, table];
}

/**
 * Pure.
 * @param {Stats} now
 * @param {Stats} before of the same connection, or of the one before it
 * @param {number} seconds between them
 * @param {Map<string, string>} names by peer
 * @returns {Group[]}
 */
export function detailsOf(now, before, seconds, names) {
  const own = { title: say('quality'), rows: /** @type {[string, string][]} */ ([
    [say('details.server'), say('status.place', { node: now.node, epoch: String(now.epoch) })],
    [say('details.path'), pathOf(now.path)],
    [say('details.ways'), waysOf(now.ways)],
    [say('details.round.trip'), unit('millisecond', now.rttMs)],
    [say('details.lost'), share(now.sentLoss)],
  ]) };
  const earlier = new Map(before.outbound.map((one) => [one.ssrc, one]));
  const running = now.outbound.filter(({ active, source, kind, frameWidth }) => active && source && (kind === 'audio' || frameWidth > 0));
  running.sort((a, b) => a.kind.localeCompare(b.kind) || String(a.source).localeCompare(String(b.source)) || b.frameWidth - a.frameWidth);
  const sent = running.map((one) => figures(one, earlier.get(one.ssrc) ?? one, seconds, one.framesEncoded - (earlier.get(one.ssrc)?.framesEncoded ?? one.framesEncoded), one.rid));
  const groups = [own, { title: say('details.sent'), rows: sent }];
  for (const [peer, name] of names) {
    const rows = Object.values(now.perSlot).filter((slot) => slot.peer === peer && slot.source).map((slot) => {
      const was = before.perSlot[slot.mid]?.peer === peer ? before.perSlot[slot.mid] : slot;
      return figures(slot, was, seconds, (slot.framesDecoded ?? 0) - (was.framesDecoded ?? 0), '');
    });
    if (rows.length > 0) groups.push({ title: name, rows });
  }
  return groups.filter(({ rows }) => rows.length > 0);
}

/** @typedef {{source?: string, kind: string, bytesSent?: number, bytesReceived?: number, packetsReceived?: number, packetsLost?: number, frameWidth?: number, frameHeight?: number}} Stream */

/**
 * @param {Stream} one
 * @param {Stream} was
 * @param {number} seconds
 * @param {number} frames since then
 * @param {string} layer
 * @returns {[string, string]}
 */
function figures(one, was, seconds, frames, layer) {
  const bytes = since(one.bytesSent ?? one.bytesReceived, was.bytesSent ?? was.bytesReceived);
  const [lost, came] = [since(one.packetsLost, was.packetsLost), since(one.packetsReceived, was.packetsReceived)];
  const source = /** @type {import('../holdfast/protocol.js').Source} */ (one.source);
  const parts = [
    layer,
    one.kind === 'video' && one.frameWidth ? `${one.frameWidth} × ${one.frameHeight}` : '',
    one.kind === 'video' ? say('details.frames', { number: Math.round(Math.max(frames, 0) / seconds) }) : '',
    unit('kilobit-per-second', (bytes * 8) / 1000 / seconds),
    lost > 0 ? say('details.loss', { share: share(lost / (lost + came)) }) : '',
  ];
  return [say(`details.${source}`), joined(parts)];
}

/**
 * Each part in one piece, and in its own direction.
 * @param {string[]} parts
 */
const joined = (parts) => parts.filter(Boolean).map((part) => `\u2068${part.replaceAll(' ', '\u00a0')}\u2069`).join(' · ');

/** A new connection counts from nothing again. */
const since = (now = 0, was = 0) => (now >= was ? now - was : now);

/** @param {Stats['path']} path */
function pathOf({ protocol, relayed, address }) {
  if (!protocol) return '–';
  return joined([protocol.toUpperCase(), say(relayed ? 'details.relayed' : 'details.direct'), address]);
}

/** @param {Stats['ways']} ways */
function waysOf(ways) {
  const tried = (/** @type {const} */ (['UDP', 'TCP', 'TURN'])).filter((way) => ways[way] !== undefined);
  return joined(tried.map((way) => say(ways[way] ? 'details.answers' : 'details.silent', { way }))) || '–';
}

/**
 * @param {string} name
 * @param {number} value
 */
const unit = (name, value) => new Intl.NumberFormat(locale, { style: 'unit', unit: name, maximumFractionDigits: 0 }).format(value);

/** @param {number} value 0 to 1 */
const share = (value) => new Intl.NumberFormat(locale, { style: 'percent', maximumFractionDigits: 1 }).format(value);
