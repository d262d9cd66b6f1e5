// The panel that opens beside the tables, for one node or one room.

import { find, make } from '../page/elements.js';

/** @type {(() => void) | undefined} */
let onClosed;

/**
 * @param {string} title
 * @param {HTMLElement[]} body
 * @param {() => void} onClose
 */
export function openSheet(title, body, onClose) {
  const sheet = find('#sheet', HTMLDialogElement);
  onClosed?.();
  onClosed = onClose;
  find('#sheet-title', HTMLElement).textContent = title;
  find('#sheet-body', HTMLElement).replaceChildren(...body);
  if (!sheet.open) sheet.showModal();
}

export function wireSheet() {
  const sheet = find('#sheet', HTMLDialogElement);
  find('#sheet-close', HTMLButtonElement).addEventListener('click', () => sheet.close());
  // What lies beside the panel is the page, which a click goes back to.
  sheet.addEventListener('click', ({ target }) => target === sheet && sheet.close());
  sheet.addEventListener('close', () => {
    onClosed?.();
    onClosed = undefined;
  });
}

/** @param {HTMLDListElement} list @param {[term: string, text: string][]} facts those without a text are left out */
export function facts(list, facts) {
  const key = JSON.stringify(facts);
  if (list.dataset.key === key) return;
  list.dataset.key = key;
  list.replaceChildren(...facts.filter(([, text]) => text !== '').flatMap(([term, text]) => [make('dt', '', term), make('dd', '', text)]));
}

/**
 * @param {string} text
 * @param {() => void} onClick
 * @param {boolean} [danger]
 */
export function act(text, onClick, danger = false) {
  const button = make('button', danger ? 'quiet danger' : 'quiet', text);
  button.type = 'button';
  button.addEventListener('click', onClick);
  return button;
}
