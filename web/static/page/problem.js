// Why nothing is shown of what somebody sends.

import { ofEncryption } from './sentences.js';
import { say } from './words.js';

/** @typedef {import('../holdfast/protocol.js').Source} Source */

/**
 * Empty when there is no reason.
 * @param {import('../holdfast/call.js').Call} call
 * @param {import('./encryption.js').Encryption | null} encryption
 * @param {ReadonlyMap<string, string>} undecoded peers whose pictures come and are not decoded, with their codec
 * @param {import('../holdfast/protocol.js').RosterEntry} entry
 * @param {Source[]} sources
 */
export function problemOf(call, encryption, undecoded, { peer, audioMuted, videoMuted, screenAudio }, sources) {
  if (peer === call.peer) return '';
  const lack = call.lacks.find((one) => one.peer === peer && sources.includes(one.source));
  if (lack) return say('tile.codec', { codec: lack.codec });
  if (!encryption) {
    const codec = sources.includes('camera') ? undecoded.get(peer) : undefined;
    if (codec === undefined) return '';
    return codec === '' || decodes(codec) ? say('tile.undecoded') : say('tile.undecoded.codec', { codec });
  }
  let problem = '';
  for (const source of sources) {
    const off = (source === 'camera' && videoMuted) || (source === 'microphone' && audioMuted) || (source === 'screen-audio' && !screenAudio);
    const state = off ? 'open' : encryption.stateOf(call.stream(peer, source));
    call.setUnreadable(peer, source, state !== 'open');
    problem ||= ofEncryption(state);
  }
  return problem;
}

/** @param {string} codec */
export function decodes(codec) {
  const codecs = RTCRtpReceiver.getCapabilities('video')?.codecs ?? [];
  return codecs.some(({ mimeType }) => mimeType.toLowerCase() === `video/${codec.toLowerCase()}`);
}
