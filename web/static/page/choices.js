// What a person chose last time, if the browser keeps anything.

/** @typedef {{name: string, microphone: string, camera: string, speaker: string, microphoneOff: boolean, cameraOff: boolean, keysOff: boolean, echo: boolean, noise: boolean, gain: boolean, blur: boolean, hideSelf: boolean, layout: string}} Choices `echo`, `noise`, `gain`: what the browser does to the microphone's sound; `blur`: to what is behind the person */

const KEY = 'holdfast.choices';

/** @returns {Choices} */
export function readChoices() {
  /** @type {Choices} */
  const choices = { name: '', microphone: '', camera: '', speaker: '', microphoneOff: false, cameraOff: false, keysOff: false, echo: true, noise: true, gain: true, blur: false, hideSelf: false, layout: 'auto' };
  try {
    const kept = JSON.parse(localStorage.getItem(KEY) ?? '{}');
    for (const [key, value] of Object.entries(choices)) {
      if (typeof kept[key] === typeof value) Object.assign(choices, { [key]: kept[key] });
    }
  } catch {
    // Nothing kept, or nothing readable.
  }
  return choices;
}

/** @param {Partial<Choices>} changed */
export function keepChoices(changed) {
  try {
    localStorage.setItem(KEY, JSON.stringify({ ...readChoices(), ...changed }));
  } catch {
    // The browser keeps nothing for this page.
  }
}
