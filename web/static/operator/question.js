// Asks before anything is changed, and says what became of it.

import { find } from '../page/elements.js';
import { Refusal } from './server.js';
import { say } from './words.js';

const TOLD_MS = 6000;

/**
 * @param {{title: string, text: string, yes: string, danger?: boolean, choice?: {label: string, options: [value: string, text: string][]}, number?: {label: string, value: string}}} question
 * @returns {Promise<{choice: string, number: string} | null>} null: no
 */
export function ask({ title, text, yes, danger = false, choice, number }) {
  const dialog = find('#question', HTMLDialogElement);
  find('#question-title', HTMLElement).textContent = title;
  find('#question-text', HTMLElement).textContent = text;
  const button = find('#question-yes', HTMLButtonElement);
  button.textContent = yes;
  button.classList.toggle('danger', danger);
  const [choices, select] = [find('#question-choice', HTMLElement), find('#question-choice select', HTMLSelectElement)];
  choices.hidden = !choice;
  find('#question-choice span', HTMLElement).textContent = choice?.label ?? '';
  select.replaceChildren(...(choice?.options ?? []).map(([value, label]) => new Option(label, value)));
  const [numbers, field] = [find('#question-number', HTMLElement), find('#question-number input', HTMLInputElement)];
  numbers.hidden = !number;
  find('#question-number span', HTMLElement).textContent = number?.label ?? '';
  field.value = number?.value ?? '';
  dialog.returnValue = '';
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener('close', () => resolve(dialog.returnValue === 'yes' ? { choice: select.value, number: field.value } : null), { once: true });
  });
}

let fades = 0;

/**
 * @param {string} text
 * @param {'good' | 'bad'} [state]
 */
export function tell(text, state = 'good') {
  const line = find('#told', HTMLElement);
  line.textContent = text;
  line.dataset.state = state;
  line.hidden = false;
  clearTimeout(fades);
  fades = setTimeout(() => { line.hidden = true; }, TOLD_MS);
}

/**
 * Does what was asked for, and tells either end.
 * @param {() => Promise<unknown>} deed
 * @param {string} done
 */
export async function attempt(deed, done) {
  try {
    await deed();
    tell(done);
  } catch (error) {
    tell(refusalText(error), 'bad');
  }
}

/** @param {unknown} error */
export function refusalText(error) {
  if (!(error instanceof Refusal)) throw error;
  if (error.code === 'unreachable') return say('unreachable');
  return error.message || say('refused', { status: error.status });
}
