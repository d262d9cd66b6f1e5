// Where the frames of all transforms are encrypted and decrypted. It tells the page when what a receiver gets begins
// or ceases to be readable: {id, state}.

import { Opener, Sealer } from './sealed-frame.js';

/** @typedef {'open' | 'wrong-key' | 'clear'} State */
/** @typedef {{side: 'send' | 'receive', kind: import('./sealed-frame.js').Kind, id: number, secret: Uint8Array}} Options */

/** One damaged frame is the network's; so many in a row are not. */
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
    // The pictures after it are made from it.
    if (kind === 'video' && told === 'open') transformer.sendKeyFrameRequest?.().catch?.(() => {});
  };
}
