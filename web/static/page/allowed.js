// What a token forbids is not offered, and says why; a device that failed does not look like one that was switched off.

/** @typedef {'microphone' | 'camera' | 'screen'} Source */
/** @typedef {import('./devices.js').Devices} Devices */

import { forbidden } from './sentences.js';
import { say } from './words.js';

/**
 * Last of all that paints the buttons.
 * @param {ParentNode} root
 * @param {(source: Source) => boolean} may publish
 * @param {Devices} devices
 */
export function showAllowed(root, may, devices) {
  for (const button of root.querySelectorAll('[data-toggle]')) {
    const source = /** @type {'microphone' | 'camera'} */ (button.getAttribute('data-toggle'));
    const problem = devices.on(source) || !may(source) ? '' : devices.problems[source];
    button.classList.toggle('troubled', problem !== '');
    if (problem) name(button, say(`${source}.retry`), problem);
    bar(button, may(source) ? '' : forbidden(source));
  }
  const share = root.querySelector('#share');
  if (share) bar(share, may('screen') ? '' : forbidden('screen'));
}

/**
 * The button stays reachable, so that its reason can be read.
 * @param {Element} button
 * @param {string} reason empty for none
 */
function bar(button, reason) {
  button.setAttribute('aria-disabled', String(reason !== ''));
  if (reason) name(button, reason, reason);
}

/**
 * @param {Element} button
 * @param {string} label
 * @param {string} title
 */
function name(button, label, title) {
  button.setAttribute('aria-label', label);
  button.setAttribute('title', title);
}
