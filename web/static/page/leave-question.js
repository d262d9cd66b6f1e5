// A single key is pressed by chance, or by a voice that is not meant for it: Leave is asked for first.

import { find } from './elements.js';

/** @param {() => void} onLeave */
export function askToLeave(onLeave) {
  const dialog = find('#leaving', HTMLDialogElement);
  if (dialog.open) return;
  find('#leaving form', HTMLFormElement).onsubmit = ({ submitter }) => {
    if (submitter instanceof HTMLButtonElement && submitter.value === 'leave') onLeave();
  };
  dialog.showModal();
}

/** The call is over by itself. */
export function stopAsking() {
  find('#leaving', HTMLDialogElement).close();
}
