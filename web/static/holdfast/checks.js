// How soon Chromium checks the way to the node of a move. While its path stands it looks every 250 ms for a pair to check, and every
// 48 ms while one was never checked; and of an answer it takes the candidates last. Both cost a move more than the network does.

import { canMoveLiveConnection } from './capability.js';

export class Checks {
  #pc;
  #alert = false;

  /** @param {RTCPeerConnection} pc */
  constructor(pc) {
    this.#pc = pc;
  }

  /**
   * The path stands: from now on there is a pair that is never checked, as no answer names its password. No node has its port, and
   * its priority is the highest, else a browser would drop it.
   * @param {string} answer
   */
  stayAlert(answer) {
    const [, , host] = address(answer) ?? [];
    if (this.#alert || !host) return;
    this.#alert = true;
    this.#suggest(`candidate:unchecked 1 udp ${2 ** 31 - 1} ${host} 65535 typ host ufrag unchecked`);
  }

  /**
   * An answer is about to be set: its first candidate is checked once its credentials are there.
   * @param {string} answer
   */
  expect(answer) {
    const [, candidate] = address(answer) ?? [];
    const [, ufrag] = /^a=ice-ufrag:(\S+)/m.exec(answer) ?? [];
    if (candidate && ufrag) this.#suggest(`${candidate} ufrag ${ufrag}`);
  }

  /**
   * It is only slower without. What other browsers make of such candidates was not looked at.
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
