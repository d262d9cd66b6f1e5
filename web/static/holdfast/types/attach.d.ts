/**
 * Shows a stream in an element and keeps the element playing through every move. An element stops when the last track of its stream ends.
 * Firefox decides to stop the element a moment before it stops it, and ignores a track that is added in between, so the picture would freeze.
 * Therefore this function plays the element again when it has ended while its stream is active.
 * @param {HTMLMediaElement} element
 * @param {MediaStream} stream
 */
export function attach(element: HTMLMediaElement, stream: MediaStream): void;
