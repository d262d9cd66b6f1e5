// What makes Chromium check the way to the node of a move at once. How much sooner that is, `holdfast chaos kill` measures.

import { Transport } from '/holdfast/transport.js';
import { equal, eventually, ok, test } from './harness.js';

const MOVES = 3;

/** @param {string} sdp */
async function answering(sdp) {
  const node = new RTCPeerConnection();
  await node.setRemoteDescription({ type: 'offer', sdp });
  await node.setLocalDescription();
  await eventually(() => node.iceGatheringState === 'complete', 'the node gathered');
  return node;
}

/**
 * The pairs to a port that no node has.
 * @param {RTCPeerConnection} pc
 */
async function unchecked(pc) {
  const report = await pc.getStats();
  return [...report.values()].filter((entry) => entry.type === 'candidate-pair' && report.get(entry.remoteCandidateId)?.port === 65535);
}

test('a pair is never checked, and the first candidate of each move is known before the answer is set', async ({ cleanup }) => {
  const { addIceCandidate } = RTCPeerConnection.prototype;
  cleanup(() => (RTCPeerConnection.prototype.addIceCandidate = addIceCandidate));
  /** @type {RTCPeerConnection | undefined} */
  let pc;
  /** @type {string[]} */
  const taken = [];
  RTCPeerConnection.prototype.addIceCandidate = function (/** @type {any[]} */ ...args) {
    pc = this;
    return addIceCandidate.apply(this, args).then(() => taken.push(args[0].candidate.split(' ').at(-1)));
  };
  const transport = new Transport({ id: 1, iceServers: () => [], screenAudio: false, audioSlots: 1, videoSlots: 1, simulcast: false });
  cleanup(() => transport.close());
  /** @type {RTCPeerConnection | undefined} */
  let former;
  for (let move = 0; move <= MOVES; move++) {
    const offer = await transport.offer({ iceRestart: false });
    await offer.set();
    const node = await answering(offer.sdp);
    cleanup(() => node.close());
    former?.close();
    const { sdp } = /** @type {RTCSessionDescription} */ (node.localDescription);
    await transport.accept(sdp);
    await eventually(() => node.connectionState === 'connected', 'the node is reached');
    const user = /^a=ice-ufrag:(\S+)/m.exec(sdp)?.[1];
    await eventually(() => taken.includes('unchecked') && (move === 0 || taken.includes(String(user))), `the browser took the candidates of move ${move}`);
    const pairs = await eventually(async () => {
      const found = pc ? await unchecked(pc) : [];
      return found.length > 0 && found;
    }, 'a pair to the port that no node has');
    ok(pairs.every(({ requestsSent }) => !requestsSent), 'it is never checked');
    former = node;
  }
  equal(taken.filter((user) => user === 'unchecked').length, 1, 'it is named once');
});
