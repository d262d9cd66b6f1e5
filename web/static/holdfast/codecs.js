// Which codecs a connection names, and in which order.

/**
 * The codecs that a connection names, preferred first. A short list keeps an offer with many slots small.
 * @type {Record<string, string[]>}
 */
const codecs = {
  audio: ['audio/red', 'audio/opus'],
  video: ['video/VP8', 'video/H264', 'video/VP9', 'video/AV1', 'video/rtx'],
};

/**
 * For each codec with variants, the variants that every media node takes.
 * @type {Record<string, RegExp>}
 */
const variants = { 'video/H264': /packetization-mode=1/, 'video/VP9': /^(?!.*profile-id=[^0])/, 'video/AV1': /^(?!.*profile=[^0])/ };

export const scalableCodecs = ['video/VP9', 'video/AV1'];

/** @typedef {RTCRtpCapabilities['codecs']} Codecs */

/** The codecs that work with a transform: their packetizers and depacketizers treat a frame as bytes and do not read its content. */
const opaque = ['audio/opus', 'video/VP8', 'video/VP9', 'video/rtx'];

/**
 * Returns what the browser knows of the wanted codecs. A browser may take a millisecond for that, so a connection asks once for all its m-lines.
 * @param {'audio' | 'video'} kind
 * @param {{first: string, without?: string, opaque: boolean}} options MIME types; `opaque`: a transform changes the frames
 */
export function knownCodecs(kind, { first, without, opaque: transformed }) {
  const usable = codecs[kind].filter((mime) => mime !== without && (!transformed || opaque.includes(mime)));
  const wanted = [...usable.filter((mime) => mime === first), ...usable.filter((mime) => mime !== first)];
  const known = RTCRtpReceiver.getCapabilities?.(kind)?.codecs ?? [];
  return wanted.flatMap((mime) => known.filter(({ mimeType, sdpFmtpLine = '' }) => mimeType.toLowerCase() === mime.toLowerCase()
    && (variants[mime]?.test(sdpFmtpLine) ?? true)));
}

/**
 * @param {RTCRtpTransceiver} transceiver
 * @param {Codecs} chosen
 */
export function preferCodecs(transceiver, chosen) {
  if (chosen.length === 0 || !('setCodecPreferences' in transceiver)) return;
  try {
    transceiver.setCodecPreferences(chosen);
  } catch {
    // Without the preferences the offer is only longer.
  }
}
