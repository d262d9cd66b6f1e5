// The sound of a shared screen. Servers from before it refuse messages that name it.

/** @typedef {import('./protocol.js').ClientMessage} ClientMessage */

/** Fields of a message that list sources. */
const lists = ['senders', 'slots', 'lost'];

/**
 * @param {string} source
 * @returns {import('./protocol.js').Kind}
 */
export const kindOf = (source) => (source === 'microphone' || source === 'screen-audio' ? 'audio' : 'video');

/**
 * A message as an older server can read it; null when nothing is left.
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
