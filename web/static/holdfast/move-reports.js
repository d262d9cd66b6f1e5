// Reports a call's moves: `migration` events to the application and `migrated` messages to the server.

import { on } from './emit.js';

/** The most lost streams that one `migrated` message may name (docs/PROTOCOL.md). */
const LOST_LIMIT = 64;

/**
 * @param {import('./media.js').Media} media
 * @param {object} to
 * @param {(migration: object) => void} to.application
 * @param {(message: import('./protocol.js').ClientMessage) => void} to.server
 */
export function reportMoves(media, { application, server }) {
  on(media, 'moving', ({ reason, node, epoch }) => {
    if (reason === 'moved') application({ phase: 'started', node, epoch });
  });
  on(media, 'attempt', ({ reason, node, epoch, step: { how, attempt } }) => {
    if (reason === 'moved') application({ phase: 'attempt', node, epoch, how, attempt });
  });
  on(media, 'migrated', (/** @type {import('./journey.js').Journey} */ migration) => {
    const { epoch, attempt, how, gapMs, lost } = migration;
    server({ type: 'migrated', epoch, attempt, how, gapMs, ...(lost.length > 0 && { lost: lost.slice(0, LOST_LIMIT) }) });
    application({ phase: 'done', ...migration });
  });
}
