// Keeps the screen on during a call. The browser lets go of it whenever the page is hidden.

/** @typedef {{released: boolean, release(): Promise<void>}} Lock */

/** @param {AbortSignal} signal ends it */
export function keepAwake(signal) {
  /** @type {{request(type: 'screen'): Promise<Lock>} | undefined} */
  const wakeLock = /** @type {any} */ (navigator).wakeLock;
  if (!wakeLock) return;
  /** @type {Lock | null} */
  let lock = null;
  const ask = async () => {
    if (document.hidden || (lock && !lock.released)) return;
    lock = await wakeLock.request('screen').catch(() => null); // A low battery refuses it.
    if (signal.aborted) lock?.release();
  };
  document.addEventListener('visibilitychange', ask, { signal });
  signal.addEventListener('abort', () => lock?.release());
  ask();
}
