// How people are shown: chosen in the bar or in the settings.

import { keepChoices, readChoices } from './choices.js';
import { find } from './elements.js';
import { Menu } from './menu.js';
import { say } from './words.js';

/** `auto`: of two people the other one is large, more of them have the same size. */
export const layouts = /** @type {const} */ (['auto', 'even', 'speaker']);

export const chosenLayout = () => layouts.find((one) => one === readChoices().layout) ?? 'auto';

/**
 * @param {() => void} onChange
 * @param {AbortSignal} signal ends it
 */
export function offerLayouts(onChange, signal) {
  const button = find('#layout', HTMLButtonElement);
  const menu = new Menu(find('#stage', HTMLElement), '', signal);
  button.addEventListener('click', () => menu.toggle(button, say('settings.layout'), layouts.map((layout) => ({
    label: say(`settings.layout.${layout}`),
    checked: layout === chosenLayout(),
    onSelect: () => {
      keepChoices({ layout });
      onChange();
    },
  }))), { signal });
}
