// Switches in the settings; the browser keeps them.

import { keepChoices, readChoices } from './choices.js';
import { make } from './elements.js';
import { chosenLayout, layouts } from './layouts.js';
import { say } from './words.js';

/** @typedef {import('./devices.js').Devices} Devices */
/** @typedef {'hideSelf' | 'blur' | 'noise' | 'echo' | 'gain'} Switch */

/**
 * @param {HTMLElement} root
 * @param {Devices} devices
 * @param {() => void} onView how people are shown was changed
 * @returns {() => void} shows what is kept
 */
export function offerSettings(root, devices, onView) {
  const blur = toggle('blur', () => devices.blur(readChoices().blur).catch(() => {})); // As with the microphone below.
  const noBlur = make('p', 'hint');
  root.append(layoutChoice(onView), toggle('hideSelf', onView), blur, noBlur);
  const refresh = () => {
    const { blurring } = devices;
    blur.hidden = blurring !== 'here';
    noBlur.hidden = blurring === 'here' || blurring === '';
    if (!noBlur.hidden) noBlur.textContent = say(blurring === 'always' ? 'settings.blur.always' : 'settings.blur.never');
    for (const input of root.querySelectorAll('input')) input.checked = readChoices()[/** @type {Switch} */ (input.name)];
    for (const select of root.querySelectorAll('select')) select.value = chosenLayout();
  };
  devices.addEventListener('change', refresh);
  refresh();
  if (!devices.may('microphone')) return refresh;
  root.append(make('h3', '', say('settings.sound')), ...(/** @type {const} */ (['noise', 'echo', 'gain'])).map((name) => toggle(name, () => devices.process({ [name]: readChoices()[name] }).catch(() => {})))); // A microphone that does not open again is told by `change`.
  return refresh;
}

/** @param {() => void} onChange */
function layoutChoice(onChange) {
  const label = make('label', 'choice', say('settings.layout'));
  const select = make('select', '');
  select.name = 'layout';
  select.append(...layouts.map((layout) => new Option(say(`settings.layout.${layout}`), layout, false, layout === chosenLayout())));
  select.addEventListener('change', () => {
    keepChoices({ layout: select.value });
    onChange();
  });
  label.append(select);
  return label;
}

/**
 * @param {Switch} name
 * @param {() => void} onChange
 */
function toggle(name, onChange) {
  const label = make('label', 'choice', say(`settings.${name}`));
  const input = make('input', '');
  [input.type, input.name, input.checked] = ['checkbox', name, readChoices()[name]];
  input.setAttribute('role', 'switch');
  input.addEventListener('change', () => {
    keepChoices({ [name]: input.checked });
    onChange();
  });
  label.append(input);
  return label;
}
