// How soon Chromium checks the way to the node of a move.

import { Transport } from '/holdfast/transport.js';
import { eventually, ok, test } from './harness.js';

const MOVES = 8;

/** @param {string} sdp */
async function answering(sdp) {
  const node = new RTCPeerConnection();
  await node.setRemoteDescription({ type: 'offer', sdp });
  await node.setLocalDescription();
  await eventually(() => node.iceGatheringState === 'complete', 'the node gathered');
  return node;
}

/**
 * Milliseconds from each answer until the node is reached.
 * @param {(f: () => void) => void} cleanup
 */
async function moves(cleanup) {
  const transport = new Transport({ id: 1, iceServers: () => [], screenAudio: false, audioSlots: 1, videoSlots: 1, simulcast: false });
  cleanup(() => transport.close());
  let took = 0;
  /** @type {RTCPeerConnection | undefined} */
  let former;
  for (let move = 0; move <= MOVES; move++) {
    const offer = await transport.offer({ iceRestart: false });
    await offer.set();
    const node = await answering(offer.sdp);
    cleanup(() => node.close());
    former?.close();
    const began = performance.now();
    const reached = new Promise((resolve) => {
      node.addEventListener('connectionstatechange', () => node.connectionState === 'connected' && resolve(performance.now()));
    });
    await transport.accept(/** @type {RTCSessionDescription} */ (node.localDescription).sdp);
    const at = await reached;
    if (move > 0) took += at - began;
    former = node;
    await eventually(() => transport.iceState !== 'checking', 'the way stands');
    await new Promise((resolve) => setTimeout(resolve, 300 + 31 * move)); // Any moment between two of Chromium's looks.
  }
  return took / MOVES;
}

test('the node of a move is checked sooner than Chromium would by itself', async ({ cleanup }) => {
  const { addIceCandidate } = RTCPeerConnection.prototype;
  cleanup(() => (RTCPeerConnection.prototype.addIceCandidate = addIceCandidate));
  let suggested = 0;
  RTCPeerConnection.prototype.addIceCandidate = function (/** @type {any[]} */ ...args) {
    return addIceCandidate.apply(this, args).then(() => suggested++);
  };
  const soon = await moves(cleanup);
  ok(suggested > MOVES, `candidates that the browser took: ${suggested}`);
  RTCPeerConnection.prototype.addIceCandidate = () => Promise.resolve();
  const late = await moves(cleanup);
  ok(soon < late, `${soon} ms for a move, and ${late} by itself`);
});
