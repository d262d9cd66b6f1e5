// The page's own elements, found once and typed.

/**
 * @template {Element} T
 * @param {string} selector
 * @param {new () => T} type
 * @returns {T}
 */
export function find(selector, type) {
  const element = document.querySelector(selector);
  if (!(element instanceof type)) throw new Error(`the page has no ${selector}`);
  return element;
}

/**
 * Shows a device button as on or off. There may be several for one device.
 * @param {'microphone' | 'camera'} source
 * @param {boolean} on
 */
export function showToggle(source, on) {
  for (const button of document.querySelectorAll(`[data-toggle="${source}"]`)) {
    button.setAttribute('aria-pressed', String(on));
    const icon = source === 'microphone' ? 'mic' : 'camera';
    button.querySelector('use')?.setAttribute('href', `#icon-${icon}${on ? '' : '-off'}`);
  }
}
