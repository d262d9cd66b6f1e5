// Hints that a person speaks into a muted microphone. The sound does not leave the browser.

import { loudness } from './level.js';

/** @typedef {import('./devices.js').Devices} Devices */

const EVERY_MS = 150;
const LOUD_DECIBELS = -45;
/** The score from which sound counts as speech: a loud look adds 1 and a quiet one takes 0.5. A cough stays below. */
const ENOUGH = 4;
/** How long the hint is not repeated. */
const AGAIN_MS = 20000;

/**
 * @param {Devices} devices
 * @param {() => void} tell
 * @param {AbortSignal} signal ends it
 */
export function hintWhileMuted(devices, tell, signal) {
  /** @type {(() => void) | null} */
  let stop = null;
  /** @type {MediaStreamTrack | null} */
  let heard = null;
  let told = -Infinity;
  const follow = () => {
    const track = devices.off.microphone && !document.hidden && !signal.aborted ? devices.track('microphone') : null;
    if (track === heard) return;
    stop?.();
    heard = track;
    stop = track && listen(track, () => {
      if (performance.now() - told < AGAIN_MS) return;
      told = performance.now();
      tell();
    });
  };
  devices.addEventListener('change', follow, { signal });
  document.addEventListener('visibilitychange', follow, { signal });
  signal.addEventListener('abort', follow);
  follow();
}

/**
 * Calls `onSpeech` when the microphone hears speech. It listens to a copy of the track, because a muted track is silent.
 * @param {MediaStreamTrack} track
 * @param {() => void} onSpeech
 */
function listen(track, onSpeech) {
  const copy = track.clone();
  copy.enabled = true;
  const context = new AudioContext();
  const analyser = new AnalyserNode(context, { fftSize: 1024 });
  context.createMediaStreamSource(new MediaStream([copy])).connect(analyser);
  const samples = new Float32Array(analyser.fftSize);
  let loud = 0;
  const timer = setInterval(() => {
    loud = Math.max(loud + (loudness(analyser, samples) > LOUD_DECIBELS ? 1 : -0.5), 0);
    if (loud < ENOUGH) return;
    loud = 0;
    onSpeech();
  }, EVERY_MS);
  return () => {
    clearInterval(timer);
    copy.stop();
    context.close();
  };
}
