// How good each connection is, every other second.

import { fair, ofPeer, ofSelf } from './quality.js';

/** @typedef {import('../holdfast/call.js').Call} Call */
/** @typedef {import('./quality.js').Quality} Quality */

const EVERY_MS = 2000;

/**
 * @param {Call} call
 * @param {(peer: string) => boolean} shows whether somebody's picture is in sight
 * @param {(self: Quality, peers: Map<string, Quality | null>, undecoded: Set<string>) => void} tell `undecoded`: whose pictures come and are not decoded
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
    const undecoded = new Set();
    for (const { peer, audioMuted, videoMuted } of call.roster) {
      if (peer === call.peer) continue;
      const received = [...after].filter(([key, slot]) => slot.peer === peer && slot.source !== 'screen' && before.has(key)).map(([key, slot]) => {
        const since = before.get(key);
        if (slot.kind === 'video' && !videoMuted && slot.framesDecoded === 0 && difference(slot.packetsReceived, since.packetsReceived) > 0 && since.packetsReceived > 0) undecoded.add(peer);
        return {
          kind: slot.kind,
          paused: Boolean(slot.paused),
          expected: slot.source === 'microphone' ? !audioMuted : !videoMuted && shows(peer),
          packets: difference(slot.packetsReceived, since.packetsReceived),
          lost: difference(slot.packetsLost, since.packetsLost),
          frames: difference(slot.framesDecoded, since.framesDecoded),
        };
      });
      peers.set(peer, ofPeer(received, seconds));
    }
    before = after;
    at = now;
    const held = call.slots.some(({ paused }) => paused);
    const own = ofSelf({ state: call.state, rttMs: stats.rttMs, sentLoss: stats.sentLoss, held, peers: [...peers.values()] });
    tell(own, fair(own, peers), undecoded);
  };
  const timer = setInterval(look, EVERY_MS);
  call.addEventListener('left', () => clearInterval(timer), { once: true });
}

/**
 * A new connection counts from nothing again.
 * @param {number} now
 * @param {number} before
 */
function difference(now = 0, before = 0) {
  return Math.max(now >= before ? now - before : now, 0);
}
