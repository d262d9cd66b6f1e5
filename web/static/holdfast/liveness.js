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
 * `answered` that of the last answer taken, both as sdp.fingerprint writes them, empty
 * when unknown; `ssrcs` are those that media has come under.
 * @typedef {{dtlsState: string, iceState: string, certificate: string, answered: string, ssrcs: ReadonlySet<number>}} Security
 */

/**
 * Whether DTLS stands with the node that gave an answer.
 *
 * On the node from before (an ICE restart) DTLS is not redone, and ICE must have
 * found its way. On another node the certificate is the proof. But Chromium reads it once for
 * every description: read too early it is the old one, read during the handshake it is
 * none, and it stays so. Then it is as good a proof that the transport was seen
 * unconnected since the answer (`renewed`), or that a certificate which was there is gone.
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
 * Whether media comes under an SSRC that was not there before the offer: it can
 * only be another node's, whatever the transport says of itself.
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
 * What arrived between two looks, both taken after `secured`.
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
 * Watches a connection until media arrives from the node that gave this
 * answer. Resolves with what is known when the limit is over: `alive` (media came), `quiet`
 * (only control packets came: nobody sends to us just now), `secured` (DTLS stands, nothing came) or `dark`.
 * @param {{look: () => Promise<Stats>, security: () => Security, before: Security, answer: string, mediaExpected: () => boolean, onSecured: () => void, limitMs: number, signal: AbortSignal}} options
 * @returns {Promise<Verdict>}
 */
export async function watch({ look, security, before, answer, mediaExpected, onSecured, limitMs, signal }) {
  const announced = fingerprint(answer);
  const until = performance.now() + limitMs;
  const first = await look();
  /** @type {Stats | null} */
  let base = null;
  /** @type {Verdict} */
  let verdict = 'dark';
  let renewed = false;
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
    await wait(LOOK_MS, signal);
  }
}
