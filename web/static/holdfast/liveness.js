// Decides whether media comes from the node that answered. connectionState is no proof: Chromium may not change it on an early restart, and
// Firefox reports `connected` without decrypting. The proof is the certificate of the DTLS handshake, and packets that arrive after it.

import { fingerprint } from './sdp.js';
import { wait } from './wait.js';

/** @typedef {import('./stats.js').Stats} Stats */
/** @typedef {'dark' | 'secured' | 'quiet' | 'alive'} Verdict */

/** The time between two looks at the statistics. A browser may answer from a cache of 50 ms. */
const LOOK_MS = 30;
/** The same while a new connection does not say that its state has changed. */
const CONNECTING_MS = 250;

/**
 * `certificate` is the other side's, `answered` that of the last answer, both as sdp.fingerprint has them, or empty;
 * `ssrcs` are those that media came under.
 * @typedef {{dtlsState: string, iceState: string, certificate: string, answered: string, ssrcs: ReadonlySet<number>}} Security
 */

/**
 * Whether DTLS stands with the node that answered. On the same node ICE must have found its way; on another one the
 * certificate is the proof. Chromium reads it once for each description and may keep an old one or none. Then the
 * proof is that the transport was seen unconnected since the answer (`renewed`), or that a certificate is gone.
 * @param {Security} now
 * @param {Security} before as it was when the offer was made
 * @param {{announced: string, renewed: boolean}} since the answer's fingerprint, and what was seen since
 */
export function secured(now, before, { announced, renewed }) {
  if (now.dtlsState !== 'connected') return false;
  if (announced === before.answered) return now.iceState === 'connected' || now.iceState === 'completed';
  if (renewed || now.certificate === announced) return true;
  return now.certificate === '' && (before.certificate !== '' || before.dtlsState !== 'connected');
}

/**
 * Whether packets arrived under an SSRC that is not in `before`. Such media can only come from another node.
 * @param {Stats} base
 * @param {Stats} now
 * @param {ReadonlySet<number>} before
 */
export function newborn(base, now, before) {
  for (const [ssrc, packets] of now.received) {
    if (!before.has(ssrc) && packets > (base.received.get(ssrc) ?? 0)) return true;
  }
  return false;
}

/**
 * Judges by what arrived between two looks at the statistics, both taken after the connection was secured.
 * @param {Stats} base
 * @param {Stats} now
 * @returns {Verdict}
 */
export function judge(base, now) {
  for (const [ssrc, packets] of now.received) {
    if (packets > (base.received.get(ssrc) ?? 0)) return 'alive';
  }
  return now.transport.packetsReceived > base.transport.packetsReceived ? 'quiet' : 'secured';
}

/**
 * Resolves with `alive` (media came), `quiet` (only RTCP came), `secured` (DTLS stands, nothing came) or `dark`.
 * `connecting` waits instead of `lookMs` until DTLS stands: on a new connection the browser tells its state, and has better to do than statistics.
 * @param {{look: () => Promise<Stats>, lookMs?: number, connecting?: (ms: number) => Promise<void>, security: () => Security, before: Security, answer: string, mediaExpected: () => boolean, onSecured: () => void, limitMs: number, signal: AbortSignal}} options
 * @returns {Promise<Verdict>}
 */
export async function watch({ look, lookMs = LOOK_MS, connecting, security, before, answer, mediaExpected, onSecured, limitMs, signal }) {
  const announced = fingerprint(answer);
  const until = performance.now() + limitMs;
  await connecting?.(CONNECTING_MS);
  const first = await look();
  /** @type {Stats | null} */
  let base = null;
  /** @type {Verdict} */
  let verdict = 'dark';
  let renewed = connecting !== undefined;
  for (let stats = first; ; stats = await look()) {
    const now = security();
    renewed ||= now.dtlsState !== 'connected';
    if (base === null && (secured(now, before, { announced, renewed }) || newborn(first, stats, before.ssrcs))) {
      base = stats;
      onSecured();
    }
    if (base !== null) {
      verdict = newborn(first, stats, before.ssrcs) ? 'alive' : judge(base, stats);
      if (verdict === 'alive' || !mediaExpected()) return verdict;
    }
    if (performance.now() >= until) return verdict;
    if (base === null && connecting) await connecting(CONNECTING_MS);
    else await wait(lookMs, signal);
  }
}
