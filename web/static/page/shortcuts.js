// Single keys, not while somebody writes, and not for who switched them off (WCAG 2.1.4).

import { readChoices } from './choices.js';

/**
 * @param {Record<string, () => void>} actions by the key, in lower case; 'escape' too, which cannot be switched off
 * @param {AbortSignal} signal
 */
export function listenForKeys(actions, signal) {
  addEventListener('keydown', (event) => {
    const { target } = event;
    if (target instanceof HTMLElement && target.closest('dialog')) return;
    const writing = target instanceof HTMLElement && target.closest('input:not([type="checkbox"]), textarea, select, [contenteditable]') !== null;
    const key = event.key.toLowerCase();
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
    if (key !== 'escape' && (writing || readChoices().keysOff)) return;
    if (!Object.hasOwn(actions, key)) return;
    event.preventDefault();
    actions[key]();
  }, { signal });
}
