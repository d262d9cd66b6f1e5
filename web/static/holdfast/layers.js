// Which layers a camera is sent in. Pure. Browsers send fewer layers of a small picture and keep the
// smallest, so the scales follow the size.

/** @typedef {{rid: string, scaleResolutionDownBy: number, maxBitrate: number, active: boolean}} Layer */

/** From this longer side on a browser sends three layers, or two. */
const THREE_FROM = 900;
const TWO_FROM = 600;

/**
 * Always three, smallest first, because layers are negotiated once; those that make no sense are inactive.
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
 * Gives the sender the layers for pictures of that size, if it has others now and sends in layers at all.
 * @param {RTCRtpSender} sender
 * @param {{width?: number, height?: number}} size of the camera's picture; empty when unknown
 * @returns {Promise<boolean>} whether anything changed
 */
export async function fitLayers(sender, { width = 0, height = 0 }) {
  const parameters = sender.getParameters();
  if (!(parameters.encodings?.length > 1)) return false;
  const wanted = new Map(layersFor(width, height).map((layer) => [layer.rid, layer]));
  let changed = false;
  for (const encoding of parameters.encodings) {
    const before = JSON.stringify(encoding);
    Object.assign(encoding, wanted.get(encoding.rid ?? ''));
    changed ||= JSON.stringify(encoding) !== before;
  }
  if (changed) await sender.setParameters(parameters);
  return changed;
}
