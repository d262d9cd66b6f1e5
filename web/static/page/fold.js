// What a narrow screen has no place for beside the microphone and Leave stands in a menu. The style sheet decides what that is.

import { find } from './elements.js';
import { Menu } from './menu.js';

/**
 * @param {AbortSignal} signal ends it
 */
export function foldControls(signal) {
  const button = find('#fold', HTMLButtonElement);
  const menu = new Menu(find('#stage', HTMLElement), '', signal);
  button.addEventListener('click', () => {
    const folded = [...document.querySelectorAll('.controls [data-fold]')].filter((one) => one instanceof HTMLElement && !one.hidden && getComputedStyle(one).display === 'none');
    menu.toggle(button, button.getAttribute('aria-label') ?? '', folded.map((one) => ({
      label: one.getAttribute('aria-label') || [...one.querySelectorAll('span:not([hidden])')].map(({ textContent }) => textContent?.trim()).filter(Boolean).join(' '),
      onSelect: () => one instanceof HTMLElement && one.click(),
    })));
  }, { signal });
}
