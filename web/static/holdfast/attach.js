// A stream in an element, that plays for as long as the stream does.

/**
 * Shows a stream in an element, and keeps it playing through every move of the call.
 *
 * An element stops when the last track of its stream ends, and goes on when another one is put in. In Firefox the
 * stop is done a moment later than it is decided, and a track that comes in between is not noticed: the
 * picture would stand still with a running track in its stream.
 *
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
