// One journey to the media node that has the room. It makes the attempts that the restart policy gives, until media arrives or a newer journey
// supersedes this one.

import { OfferRejected } from './offers.js';
import { watch } from './liveness.js';
import { Aborted, wait } from './wait.js';

/** @typedef {import('./transport.js').Transport} Transport */
/** @typedef {import('./restart-policy.js').Step} Step */
/** @typedef {import('./restart-policy.js').Failure} Failure */
/** @typedef {import('./protocol.js').Answer} Answer */

/**
 * @typedef {object} Surroundings
 * @property {() => Transport} make a new connection, sending what the old one sent
 * @property {(transport: Transport, sdp: string, fresh: boolean, signal: AbortSignal) => Promise<Answer>} ask
 * @property {(signal: AbortSignal) => Promise<void>} socketOpen resolves at once when it is
 * @property {() => boolean} mediaExpected whether somebody's media should arrive
 * @property {(step: Step) => void} began an attempt begins
 * @property {(transport: Transport) => void} described its offer is set, so that its m-lines are known
 * @property {(transport: Transport) => void} secured the node is reached: its tracks can be shown
 * @property {(transport: Transport) => void} unreached the node answered, and no way of media leads there
 * @property {(transport: Transport) => void} discarded a new connection failed and was closed
 * @property {number} [lookMs] between two looks at the statistics, where there is no hurry
 * @property {(answer: Answer, step: Step) => string} read the answer's SDP (the place for the test fault)
 */

export class Move {
  #abort = new AbortController();
  #policy;
  #current;
  #around;
  #secured = false;

  /**
   * @param {{first: () => Step, next: (failure: Failure) => Step}} policy
   * @param {Transport | null} current the connection to move; null when there is none
   * @param {Surroundings} around
   */
  constructor(policy, current, around) {
    this.#policy = policy;
    this.#current = current;
    this.#around = around;
  }

  /** Ends the journey. `run` rejects with Aborted, and closes a connection that it made, unless that connection has reached its node. */
  supersede() {
    this.#abort.abort();
  }

  /** @returns {Promise<{transport: Transport, step: Step, answer: Answer}>} */
  async run() {
    let step = this.#policy.first();
    for (;;) {
      if (step.waitMs > 0) await wait(step.waitMs, this.#abort.signal);
      this.#around.began(step);
      const outcome = await this.#attempt(step);
      if (typeof outcome !== 'string') return { ...outcome, step };
      step = this.#policy.next(outcome);
    }
  }

  /**
   * @param {Step} step
   * @returns {Promise<{transport: Transport, answer: Answer} | Failure>}
   */
  async #attempt(step) {
    const fresh = step.how !== 'restart';
    const transport = fresh || !this.#current ? this.#around.make() : this.#current;
    try {
      const outcome = await this.#negotiate(transport, step);
      if (typeof outcome === 'string' && fresh) this.#discard(transport);
      return outcome;
    } catch (error) {
      // A new connection that has reached its node stays open, because the next journey can move it on from there.
      if (fresh && !this.#secured) this.#discard(transport);
      throw error;
    }
  }

  /** @param {Transport} transport */
  #discard(transport) {
    transport.close();
    if (!this.#abort.signal.aborted) this.#around.discarded(transport); // Else the next journey decides what is sent where.
  }

  /**
   * @param {Transport} transport
   * @param {Step} step
   * @returns {Promise<{transport: Transport, answer: Answer} | Failure>}
   */
  async #negotiate(transport, step) {
    const { signal } = this.#abort;
    const fresh = step.how !== 'restart';
    const before = transport.security;
    this.#secured = false;
    let offer;
    try {
      offer = await transport.offer({ iceRestart: step.iceRestart });
    } catch (error) {
      if (signal.aborted) throw new Aborted();
      return 'rejected'; // This connection makes no offers any more.
    }
    this.#check();
    let answer;
    try {
      answer = await this.#answerWithin(transport, offer, fresh, step.limitMs);
    } catch (error) {
      if (error instanceof OfferRejected) return 'rejected';
      throw error;
    }
    if (answer === null) return 'timeout';
    try {
      await offer.set();
    } catch {
      this.#check();
      return 'rejected';
    }
    this.#around.described(transport);
    const sdp = this.#around.read(answer, step);
    if (!fresh && !step.iceRestart && transport.isTaken(sdp)) return 'taken';
    try {
      await transport.accept(sdp);
    } catch {
      this.#check();
      return 'rejected';
    }
    this.#check();
    const verdict = await watch({
      look: () => transport.stats(),
      lookMs: this.#around.lookMs,
      connecting: fresh ? (ms) => transport.changed(ms, signal) : undefined,
      security: () => transport.security,
      answer: answer.sdp,
      before,
      mediaExpected: this.#around.mediaExpected,
      onSecured: () => {
        this.#secured = true;
        this.#around.secured(transport);
      },
      limitMs: step.limitMs,
      signal,
    });
    this.#check();
    if (verdict === 'dark') this.#around.unreached(transport);
    // A secured connection counts as arrived when no media is expected. RTCP alone counts too, because the other peers may still be moving.
    const arrived = verdict === 'alive' || verdict === 'quiet' || (verdict === 'secured' && !this.#around.mediaExpected());
    return arrived ? { transport, answer } : 'timeout';
  }

  /**
   * Sends the offer and waits for its answer; meanwhile the browser sets the offer as its local description. The limit does not end an attempt
   * while no socket is open, so that time without a network does not count as the attempt's failure.
   * @param {Transport} transport
   * @param {import('./transport.js').MadeOffer} offer
   * @param {boolean} fresh
   * @param {number} limitMs
   * @returns {Promise<Answer | null>} null when no answer came in time
   */
  async #answerWithin(transport, offer, fresh, limitMs) {
    const { signal } = this.#abort;
    const asking = new AbortController();
    const onAbort = () => asking.abort();
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      await this.#around.socketOpen(signal);
      const answer = this.#around.ask(transport, offer.sdp, fresh, asking.signal);
      offer.set().catch(() => {}); // It is awaited before the answer is taken.
      return await Promise.race([answer, this.#limit(limitMs, asking.signal)]);
    } catch (error) {
      if (signal.aborted) throw new Aborted();
      throw error;
    } finally {
      signal.removeEventListener('abort', onAbort);
      asking.abort();
    }
  }

  /**
   * @param {number} limitMs
   * @param {AbortSignal} signal
   * @returns {Promise<null>}
   */
  async #limit(limitMs, signal) {
    await wait(limitMs, signal);
    await this.#around.socketOpen(signal);
    return null;
  }

  #check() {
    if (this.#abort.signal.aborted) throw new Aborted();
  }
}
