// Where a call is heard: from the chosen loudspeaker, and from the system's while that one is gone.

import { readChoices } from './choices.js';
import { notice } from './notices.js';
import { say } from './words.js';

/**
 * @param {(id: string) => void} use empty for the system's
 * @param {AbortSignal} signal
 */
export function followSpeaker(use, signal) {
  /** Whether the chosen loudspeaker is gone. It begins true, because one that is missing from the beginning is not announced. */
  let gone = true;
  const look = async () => {
    const there = await outputs();
    if (signal.aborted) return;
    const { speaker } = readChoices();
    const missing = speaker !== '' && there.length > 0 && !there.includes(speaker);
    use(missing ? '' : speaker);
    if (missing && !gone) notice(say('speaker.gone'));
    gone = missing;
  };
  navigator.mediaDevices?.addEventListener('devicechange', look, { signal });
  look();
}

/** Returns the ids of the loudspeakers; empty when the browser does not tell them. */
async function outputs() {
  const all = await navigator.mediaDevices?.enumerateDevices().catch(() => []) ?? [];
  return all.filter(({ kind, deviceId }) => kind === 'audiooutput' && deviceId !== '').map(({ deviceId }) => deviceId);
}
