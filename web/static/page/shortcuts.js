// Not while somebody writes.

/**
 * @param {Record<string, () => void>} actions by the key, in lower case; 'escape' too
 * @param {AbortSignal} signal
 */
export function listenForKeys(actions, signal) {
  addEventListener('keydown', (event) => {
    const writing = event.target instanceof HTMLElement && event.target.closest('input, textarea, select, [contenteditable]') !== null;
    const key = event.key.toLowerCase();
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || (writing && key !== 'escape')) return;
    if (!Object.hasOwn(actions, key)) return;
    event.preventDefault();
    actions[key]();
  }, { signal });
}
