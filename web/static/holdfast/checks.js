// Makes Chromium check the way to the node of a move sooner. While its path stands, Chromium looks for a pair to check every 250 ms, or every
// 48 ms while one pair was never checked. It takes the candidates of an answer last. Both delays cost a move more time than the network does.

import { canMoveLiveConnection } from './capability.js';

export class Checks {
  #pc;
  #alert = false;

  /** @param {RTCPeerConnection} pc */
  constructor(pc) {
    this.#pc = pc;
  }

  /**
   * Adds a candidate whose pair is never checked, because no answer names its password. Its port is none of a node's. Its priority is the
   * highest, because a browser would drop it otherwise. Call this once the path stands.
   * @param {string} answer
   */
  stayAlert(answer) {
    const [, , host] = address(answer) ?? [];
    if (this.#alert || !host) return;
    this.#alert = true;
    this.#suggest(`candidate:unchecked 1 udp ${2 ** 31 - 1} ${host} 65535 typ host ufrag unchecked`);
  }

  /**
   * Adds the first candidate of an answer that is about to be set, so that Chromium checks it as soon as the answer's credentials are known.
   * @param {string} answer
   */
  expect(answer) {
    const [, candidate] = address(answer) ?? [];
    const [, ufrag] = /^a=ice-ufrag:(\S+)/m.exec(answer) ?? [];
    if (candidate && ufrag) this.#suggest(`${candidate} ufrag ${ufrag}`);
  }

  /**
   * Adds a candidate in Chromium only; what other browsers do with such candidates is unknown. A failure is ignored, because a move without the
   * candidate is only slower.
   * @param {string} candidate
   */
  #suggest(candidate) {
    if (canMoveLiveConnection(navigator)) this.#pc.addIceCandidate({ candidate, sdpMLineIndex: 0 }).catch(() => {});
  }
}

/** @param {string} answer */
function address(answer) {
  return /^a=(candidate:\S+ 1 udp \d+ (\S+) \d+ typ host)/m.exec(answer);
}
