/**
 * @param {AnalyserNode} analyser
 * @param {Float32Array} samples of its fftSize
 */
export function loudness(analyser, samples) {
  analyser.getFloatTimeDomainData(samples);
  let sum = 0;
  for (const sample of samples) sum += sample * sample;
  return 10 * Math.log10(sum / samples.length + 1e-12); // dB
}

export class Level {
  #meter;
  /** @type {AudioContext | null} */
  #context = null;
  /** @type {MediaStreamAudioSourceNode | null} */
  #source = null;
  /** @type {AnalyserNode | null} */
  #analyser = null;
  #frame = 0;

  /** @param {HTMLElement} meter its --level goes from 0 to 1 */
  constructor(meter) {
    this.#meter = meter;
  }

  /** @param {MediaStreamTrack | null} track null ends it */
  show(track) {
    this.#source?.disconnect();
    this.#source = null;
    cancelAnimationFrame(this.#frame);
    this.#meter.style.setProperty('--level', '0');
    if (!track || typeof AudioContext === 'undefined') {
      this.#context?.suspend();
      return;
    }
    this.#context ??= new AudioContext();
    this.#context.resume();
    this.#analyser ??= new AnalyserNode(this.#context, { fftSize: 512, smoothingTimeConstant: 0.6 });
    this.#source = this.#context.createMediaStreamSource(new MediaStream([track]));
    this.#source.connect(this.#analyser);
    const samples = new Float32Array(this.#analyser.fftSize);
    const draw = () => {
      // From -60 dB (silence) to -10 dB (loud).
      const decibels = this.#analyser ? loudness(this.#analyser, samples) : -Infinity;
      this.#meter.style.setProperty('--level', Math.min(Math.max((decibels + 60) / 50, 0), 1).toFixed(3));
      this.#frame = requestAnimationFrame(draw);
    };
    draw();
  }
}
