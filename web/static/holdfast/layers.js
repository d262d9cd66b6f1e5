// Which layers a camera is sent in. Pure. Browsers send fewer layers of a small picture and keep the
// smallest, so the scales follow the size.

/** @typedef {{rid: string, scaleResolutionDownBy: number, maxBitrate: number, active: boolean}} Layer */

/** A browser sends three layers from THREE_FROM pixels of the picture's longer side on, and two from TWO_FROM on. */
const THREE_FROM = 900;
const TWO_FROM = 600;

/**
 * Returns three layers, smallest first. There are always three because layers are negotiated once; those too many for the size are inactive.
 * @param {number} width of the camera's picture; 0 when unknown
 * @param {number} height
 * @returns {Layer[]}
 */
export function layersFor(width, height) {
  const longer = Math.max(width, height) || THREE_FROM;
  if (longer >= THREE_FROM) {
    return [layer('q', 4, 150_000), layer('h', 2, 500_000), layer('f', 1, 1_700_000)];
  }
  if (longer >= TWO_FROM) {
    return [layer('q', 2, 200_000), layer('h', 1, 700_000), layer('f', 1, 700_000, false)];
  }
  return [layer('q', 1, 350_000), layer('h', 1, 350_000, false), layer('f', 1, 350_000, false)];
}

/**
 * One stream with the layers of a scalability mode.
 * @param {string} scalabilityMode
 */
export function scalableLayers(scalabilityMode) {
  return [{ scalabilityMode, maxBitrate: 2_000_000 }];
}

/**
 * @param {string} rid
 * @param {number} scaleResolutionDownBy
 * @param {number} maxBitrate
 * @param {boolean} [active]
 * @returns {Layer}
 */
function layer(rid, scaleResolutionDownBy, maxBitrate, active = true) {
  return { rid, scaleResolutionDownBy, maxBitrate, active };
}

/**
 * Sets the sender's layers to those for the camera's size. Does nothing when the sender has only one encoding or has these layers already.
 * @param {RTCRtpSender} sender
 * @param {{width?: number, height?: number}} size of the camera's picture; empty when unknown
 * @param {readonly string[]} [resting] the layers that are not sent
 * @returns {Promise<boolean>} whether anything changed
 */
export async function fitLayers(sender, { width = 0, height = 0 }, resting = []) {
  const parameters = sender.getParameters();
  if (!(parameters.encodings?.length > 1)) return false;
  const wanted = new Map(layersFor(width, height).map((layer) => [layer.rid, layer]));
  let changed = false;
  for (const encoding of parameters.encodings) {
    const before = JSON.stringify(encoding);
    Object.assign(encoding, wanted.get(encoding.rid ?? ''));
    if (resting.includes(encoding.rid ?? '')) encoding.active = false;
    changed ||= JSON.stringify(encoding) !== before;
  }
  if (changed) await sender.setParameters(parameters);
  return changed;
}
