/**
 * Shows a stream in an element, and keeps it playing through every move. An element stops when the last track of its
 * stream ends. Firefox does that a moment later than it decides it, and misses a track that comes in between: the
 * picture would stand still.
 * @param {HTMLMediaElement} element
 * @param {MediaStream} stream
 */
export function attach(element, stream) {
  element.autoplay = true;
  element.srcObject = stream;
  element.addEventListener('ended', () => {
    if (element.srcObject === stream && stream.active) element.play().catch(() => {}); // Autoplay it is, or the page has been told before.
  });
}
