// The worker that encrypts and decrypts the frames of all transforms. It posts {id, state} to the page when the frames of a receiver become
// readable or unreadable.

import { Opener, Sealer } from './sealed-frame.js';

/** @typedef {'open' | 'wrong-key' | 'clear'} State */
/** @typedef {{side: 'send' | 'receive', kind: import('./sealed-frame.js').Kind, id: number, secret: Uint8Array}} Options */

/** After this many unreadable frames in a row the page is told. A single one may have been damaged by the network. */
const CONVINCED = 5;

/** @type {any} */ (globalThis).onrtctransform = (/** @type {any} */ { transformer }) => {
  const { readable, writable, options } = transformer;
  const transform = options.side === 'send' ? sealing(options) : opening(options, transformer);
  readable.pipeThrough(new TransformStream({ transform })).pipeTo(writable).catch(() => {}); // Ends with its connection.
};

/** @param {Options} options */
function sealing({ secret, kind }) {
  const sealer = new Sealer(secret, kind);
  return async (/** @type {any} */ frame, /** @type {TransformStreamDefaultController} */ controller) => {
    if (frame.data.byteLength === 0) return;
    frame.data = (await sealer.seal(new Uint8Array(frame.data))).buffer;
    controller.enqueue(frame);
  };
}

/**
 * @param {Options} options
 * @param {any} transformer
 */
function opening({ secret, kind, id }, transformer) {
  const opener = new Opener(secret, kind);
  /** @type {State} */
  let told = 'open';
  let failures = 0;
  const tell = (/** @type {State} */ state) => {
    if (state === told) return;
    told = state;
    postMessage({ id, state });
  };
  return async (/** @type {any} */ frame, /** @type {TransformStreamDefaultController} */ controller) => {
    const opened = await opener.open(new Uint8Array(frame.data));
    if (typeof opened !== 'string') {
      failures = 0;
      tell('open');
      frame.data = opened.buffer;
      controller.enqueue(frame);
      return;
    }
    failures++;
    if (opened !== 'damaged' && failures >= CONVINCED) tell(opened);
    // The next pictures depend on the frame that was lost, so a keyframe is requested.
    if (kind === 'video' && told === 'open') transformer.sendKeyFrameRequest?.().catch?.(() => {});
  };
}
