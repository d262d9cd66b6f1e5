// The microphone and the camera, and what to tell somebody who has none.

/** Something a person can do something about. */
export class DeviceProblem extends Error {}

/** @typedef {{width: number, height: number, fps: number}} Picture */

/**
 * By the name of getUserMedia's error.
 * @type {Record<string, string>}
 */
const sentences = {
  NotAllowedError: 'The browser was not allowed to use the camera and microphone. Allow it in the address bar and reload, or join to watch and listen.',
  NotFoundError: 'No camera or microphone was found. Plug one in and reload, or join to watch and listen.',
  NotReadableError: 'The camera or microphone is in use by another program. Close it and reload, or join to watch and listen.',
  OverconstrainedError: 'The camera cannot give a picture of that size. Reload without a size in the address.',
};

/**
 * Opens both, or whichever of them there is.
 * @param {Picture} picture
 * @returns {Promise<MediaStream>} rejects with DeviceProblem
 */
export async function openBoth(picture) {
  try {
    return await open({ audio: true, video: videoOf(picture) });
  } catch (error) {
    if (!(error instanceof DOMException) || error.name !== 'NotFoundError') throw problemOf(error);
  }
  // One of the two is missing: the other one is better than nothing.
  for (const only of [{ audio: true }, { video: videoOf(picture) }]) {
    try {
      return await open(only);
    } catch (error) {
      if (!(error instanceof DOMException) || error.name !== 'NotFoundError') throw problemOf(error);
    }
  }
  throw new DeviceProblem(sentences.NotFoundError);
}

/**
 * Opens the camera again after it was switched off.
 * @param {Picture} picture
 * @returns {Promise<MediaStreamTrack>} rejects with DeviceProblem
 */
export async function openCamera(picture) {
  try {
    return (await open({ video: videoOf(picture) })).getVideoTracks()[0];
  } catch (error) {
    throw problemOf(error);
  }
}

/** @param {MediaStreamConstraints} constraints */
function open(constraints) {
  if (!navigator.mediaDevices) throw new DeviceProblem('The browser gives the camera to secure pages only. Open this page over https or on localhost.');
  return navigator.mediaDevices.getUserMedia(constraints);
}

/**
 * @param {Picture} picture
 * @returns {MediaTrackConstraints}
 */
function videoOf({ width, height, fps }) {
  return { width: { ideal: width }, height: { ideal: height }, frameRate: { ideal: fps, max: fps } };
}

/** @param {unknown} error */
function problemOf(error) {
  if (error instanceof DeviceProblem) return error;
  const name = error instanceof DOMException ? error.name : '';
  return new DeviceProblem(sentences[name] ?? 'The camera and microphone cannot be used. Reload to try again, or join to watch and listen.', { cause: error });
}
