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
 * Whether DTLS stands with the holder of the announced certificate. Where it
 * stood with the same one before (an ICE restart on the same node), the certificate
 * proves nothing new and ICE must have found its way too.
 * @param {Stats} stats
 * @param {{announced: string, before: string, iceState: string}} known fingerprints as sdp.fingerprint returns them
 */
export function secured(stats, { announced, before, iceState }) {
  const { dtlsState, remoteFingerprint } = stats.transport;
  if (dtlsState !== '' && dtlsState !== 'connected') return false;
  const iceUp = iceState === 'connected' || iceState === 'completed';
  // A browser that does not tell the certificate: a new connection can be judged by its states.
  if (remoteFingerprint === '') return iceUp && before === '';
  return remoteFingerprint === announced && (iceUp || announced !== before);
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
 * @param {{look: () => Promise<Stats>, iceState: () => string, answer: string, before: string, mediaExpected: () => boolean, onSecured: () => void, limitMs: number, signal: AbortSignal}} options
 * @returns {Promise<Verdict>}
 */
export async function watch({ look, iceState, answer, before, mediaExpected, onSecured, limitMs, signal }) {
  const announced = fingerprint(answer);
  const until = performance.now() + limitMs;
  /** @type {Stats | null} */
  let base = null;
  /** @type {Verdict} */
  let verdict = 'dark';
  while (performance.now() < until) {
    const stats = await look();
    if (base === null && secured(stats, { announced, before, iceState: iceState() })) {
      base = stats;
      verdict = 'secured';
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
