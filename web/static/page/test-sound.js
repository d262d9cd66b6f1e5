// Two soft notes out of the speaker that was chosen.

const NOTES = [523, 659];
const SECONDS = 0.35;

/**
 * To be called in a click.
 * @param {string} speaker its id; empty for the system's
 */
export async function playTestSound(speaker) {
  const context = new AudioContext();
  const out = context.createMediaStreamDestination();
  const audio = /** @type {HTMLAudioElement & {setSinkId?: (id: string) => Promise<void>}} */ (new Audio());
  audio.srcObject = out.stream;
  try {
    if (speaker && audio.setSinkId) await audio.setSinkId(speaker).catch(() => {}); // Unplugged: the system's.
    await audio.play();
    await ring(context, out);
  } finally {
    audio.srcObject = null;
    await context.close();
  }
}

/**
 * @param {AudioContext} context
 * @param {AudioNode} out
 * @returns {Promise<void>}
 */
export function ring(context, out) {
  return new Promise((resolve) => {
    NOTES.forEach((frequency, i) => {
      const [from, to] = [context.currentTime + 0.05 + i * SECONDS, context.currentTime + 0.05 + (i + 1) * SECONDS];
      const volume = new GainNode(context, { gain: 0 });
      volume.gain.setValueAtTime(0, from);
      volume.gain.linearRampToValueAtTime(0.2, from + 0.02);
      volume.gain.linearRampToValueAtTime(0, to);
      const note = new OscillatorNode(context, { frequency });
      note.connect(volume).connect(out);
      note.start(from);
      note.stop(to);
      if (i === NOTES.length - 1) note.addEventListener('ended', () => resolve());
    });
  });
}
