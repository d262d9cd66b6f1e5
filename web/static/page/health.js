// How good each connection is, every other second.

import { fair, ofPeer, ofSelf } from './quality.js';

/** @typedef {import('../holdfast/call.js').Call} Call */
/** @typedef {import('./quality.js').Quality} Quality */

const EVERY_MS = 2000;

/**
 * @param {Call} call
 * @param {(peer: string) => boolean} shows whether somebody's picture is in sight
 * @param {(self: Quality, peers: Map<string, Quality | null>, undecoded: Map<string, string>, unheard: Set<string>) => void} tell `undecoded`: of whose pictures nothing is decoded, and
 *   their codec, if it is known; `unheard`: of whose sound nothing is played although it comes
 */
export function watchHealth(call, shows, tell) {
  /** @type {Map<string, any>} */
  let before = new Map();
  let at = performance.now();
  const look = async () => {
    const stats = await call.stats();
    if (!stats || call.state === 'left') return;
    const now = performance.now();
    const seconds = (now - at) / 1000;
    const after = new Map(Object.values(stats.perSlot).filter(({ peer }) => peer !== '').map((slot) => [`${slot.mid} ${slot.peer} ${slot.source}`, slot]));
    const peers = new Map();
    /** @type {Map<string, string>} */
    const undecoded = new Map();
    /** @type {Set<string>} */
    const unheard = new Set();
    for (const { peer, audioMuted, videoMuted } of call.roster) {
      if (peer === call.peer) continue;
      const received = [...after].filter(([key, slot]) => slot.peer === peer && ['microphone', 'camera'].includes(slot.source) && before.has(key)).map(([key, slot]) => {
        const since = before.get(key);
        const packets = difference(slot.packetsReceived, since.packetsReceived);
        const unread = slot.kind === 'video' && !videoMuted && slot.framesDecoded === 0 && packets > 0;
        if (unread && since.packetsReceived > 0) undecoded.set(peer, slot.codec ?? '');
        if (!audioMuted && slot.source === 'microphone' && packets > 0 && isConcealed(slot, since)) unheard.add(peer);
        // What this browser cannot show is no fault of anybody's connection.
        const lacked = unread || call.lacks.some((lack) => lack.peer === peer && lack.source === slot.source);
        return {
          kind: slot.kind,
          paused: Boolean(slot.paused),
          expected: !lacked && !(slot.paused && call.limited) && (slot.source === 'microphone' ? !audioMuted : !videoMuted && shows(peer)),
          packets,
          lost: difference(slot.packetsLost, since.packetsLost),
          frames: difference(slot.framesDecoded, since.framesDecoded),
        };
      });
      peers.set(peer, ofPeer(received, seconds));
    }
    before = after;
    at = now;
    const held = !call.limited && call.slots.some(({ paused }) => paused);
    const own = ofSelf({ state: call.state, rttMs: stats.rttMs, sentLoss: stats.sentLoss, held, peers: [...peers.values()] });
    tell(own, fair(own, peers), undecoded, unheard);
  };
  const timer = setInterval(look, EVERY_MS);
  call.addEventListener('left', () => clearInterval(timer), { once: true });
}

/**
 * Whether all that was played since the last look stands in for sound that could not be decoded.
 * @param {{concealedSamples?: number, totalSamplesReceived?: number}} now
 * @param {{concealedSamples?: number, totalSamplesReceived?: number}} before
 */
function isConcealed(now, before) {
  const played = difference(now.totalSamplesReceived, before.totalSamplesReceived);
  return played > 0 && difference(now.concealedSamples, before.concealedSamples) >= played;
}

/**
 * A new connection counts from nothing again.
 * @param {number} now
 * @param {number} before
 */
function difference(now = 0, before = 0) {
  return Math.max(now >= before ? now - before : now, 0);
}
