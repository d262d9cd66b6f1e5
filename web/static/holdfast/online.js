import { judge } from './liveness.js';
import { wait } from './wait.js';

/** @typedef {import('./transport.js').Transport} Transport */

/** How long after the network's return nothing must arrive before the connection is mended. */
const SILENT_MS = 800;

/**
 * Calls `silent` when nothing arrives on the connection in the moment after the network came back. ICE may need half a minute to notice that.
 * @param {() => Transport | null} present null while there is nothing to mend
 * @param {(transport: Transport) => void} silent
 * @param {AbortSignal} signal
 */
export function watchNetwork(present, silent, signal) {
  globalThis.addEventListener?.('online', async () => {
    const transport = present();
    if (!transport) return;
    try {
      const before = await transport.stats();
      await wait(SILENT_MS, signal);
      if (judge(before, await transport.stats()) === 'secured') silent(transport);
    } catch {
      // Closed meanwhile.
    }
  }, { signal });
}
