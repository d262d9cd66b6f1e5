// Words over the stage. Screen readers hear them too.

import { find, make } from './elements.js';
import { say } from './words.js';

const MOST = 3;

/**
 * Shows a notice over the stage. A text that is shown already is not shown twice.
 * @param {string} text
 * @param {{forMs?: number, tone?: 'warn' | 'good' | 'news', action?: string, onAction?: () => void}} [options] 0 ms: until it is clicked away;
 *   `news` pass by themselves, and the newest takes the place of the one before
 * @returns {() => void} withdraws it
 */
export function notice(text, options = {}) {
  const { tone = 'warn', forMs = tone === 'news' ? 4000 : 7000, action, onAction } = options;
  const notices = find('#notices', HTMLElement);
  const before = [...notices.children].find((child) => child.firstElementChild?.textContent === text);
  if (before) return () => before.remove();
  if (tone === 'news') notices.querySelector('.news')?.remove();
  const element = make('div', `notice ${tone}`);
  element.append(make('span', '', text));
  const button = make('button', action ? 'quiet' : 'quiet plain', action ?? say('dismiss'));
  button.type = 'button';
  button.addEventListener('click', () => {
    element.remove();
    onAction?.();
  });
  if (tone !== 'news') element.append(button);
  notices.append(element);
  while (notices.children.length > MOST) notices.firstElementChild?.remove();
  if (forMs > 0) setTimeout(() => element.remove(), forMs);
  return () => element.remove();
}

export function clearNotices() {
  find('#notices', HTMLElement).replaceChildren();
}

/** Removes the notices that offer no action, because they may cover the element that has the focus. */
export function dismissNotices() {
  for (const button of find('#notices', HTMLElement).querySelectorAll('.plain')) button.parentElement?.remove();
}

/**
 * To screen readers only.
 * @param {string} text
 */
export function whisper(text) {
  find('#whisper', HTMLElement).textContent = text;
}
