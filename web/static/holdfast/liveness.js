// Does media really come from the node that answered?
//
// Never believed: connectionState. Chromium may not change it on an early restart, and
// Firefox says `connected` of a connection that decrypts nothing. Believed: the
// certificate with which DTLS was done, and packets that arrived after it.

import { fingerprint } from './sdp.js';
import { wait } from './wait.js';

/** @typedef {import('./stats.js').Stats} Stats */
/** @typedef {'dark' | 'secured' | 'quiet' | 'alive'} Verdict */

/** The pause between two looks. A browser may answer from a cache of about 50 ms. */
const LOOK_MS = 30;

/**
 * What is known of the secure transport: `certificate` is the other side's and
 * `answered` that of the last answer taken, both as sdp.fingerprint writes them, empty when unknown.
 * @typedef {{dtlsState: string, iceState: string, certificate: string, answered: string}} Security
 */

/**
 * Whether DTLS stands with the node that gave an answer.
 *
 * On the node from before (an ICE restart) DTLS is not redone, and ICE must have
 * found its way. On another node the certificate is the proof; but Chromium reads it
 * once for every description, and shows none for good when it was read during the
 * handshake. So a certificate that was there and is gone, under a transport that is connected,
 * proves a new handshake just as well.
 * @param {Security} now
 * @param {Security} before as it was when the offer was made
 * @param {string} announced the answer's fingerprint
 */
export function secured(now, before, announced) {
  if (now.dtlsState !== 'connected') return false;
  if (announced === before.answered) return now.iceState === 'connected' || now.iceState === 'completed';
  if (now.certificate !== '') return now.certificate === announced;
  return before.certificate !== '' || before.dtlsState !== 'connected';
}

/**
 * What arrived between two looks, both taken after `secured`.
 * @param {Stats} base
 * @param {Stats} now
 * @returns {Verdict}
 */
export function judge(base, now) {
  for (const [mid, { packetsReceived, framesDecoded }] of now.inbound) {
    const before = base.inbound.get(mid);
    if (packetsReceived > (before?.packetsReceived ?? 0) || framesDecoded > (before?.framesDecoded ?? 0)) return 'alive';
  }
  return now.transport.packetsReceived > base.transport.packetsReceived ? 'quiet' : 'secured';
}

/**
 * Watches a connection until media arrives from the node that gave this
 * answer. Resolves with what is known when the limit is over: `alive` (media came), `quiet`
 * (only control packets came: nobody sends to us just now), `secured` (DTLS stands, nothing came) or `dark`.
 * @param {{look: () => Promise<Stats>, security: () => Security, before: Security, answer: string, mediaExpected: () => boolean, onSecured: () => void, limitMs: number, signal: AbortSignal}} options
 * @returns {Promise<Verdict>}
 */
export async function watch({ look, security, before, answer, mediaExpected, onSecured, limitMs, signal }) {
  const announced = fingerprint(answer);
  const until = performance.now() + limitMs;
  /** @type {Stats | null} */
  let base = null;
  /** @type {Verdict} */
  let verdict = 'dark';
  while (performance.now() < until) {
    const stats = await look();
    if (base === null && secured(security(), before, announced)) {
      base = stats;
      onSecured();
    }
    if (base !== null) {
      verdict = judge(base, stats);
      if (verdict === 'alive' || !mediaExpected()) return verdict;
    }
    await wait(LOOK_MS, signal);
  }
  return verdict;
}
