// The source `screen-audio`, the sound of a shared screen. Servers that are older than this source refuse messages that name it.

/** @typedef {import('./protocol.js').ClientMessage} ClientMessage */

/** The fields of a message that list sources. */
const lists = ['senders', 'slots', 'lost'];

/**
 * @param {string} source
 * @returns {import('./protocol.js').Kind}
 */
export const kindOf = (source) => (source === 'microphone' || source === 'screen-audio' ? 'audio' : 'video');

/**
 * Returns a message as an older server can read it, without `screen-audio`; null when the message is about that source alone.
 * @param {ClientMessage} message
 * @returns {ClientMessage | null}
 */
export function withoutScreenAudio(message) {
  if ('source' in message && message.source === 'screen-audio') return null;
  /** @type {any} */
  const rest = { ...message };
  for (const list of lists) {
    if (Array.isArray(rest[list])) rest[list] = rest[list].filter((/** @type {{source: string}} */ { source }) => source !== 'screen-audio');
  }
  return rest;
}
