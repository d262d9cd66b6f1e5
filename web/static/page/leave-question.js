// A single key is pressed by chance, or by a voice that is not meant for it: Leave is asked for first. Who runs the room may end the call for everybody instead.

import { find } from './elements.js';

/** @param {{onLeave: () => void, onEnd: (() => void) | null}} options `onEnd`: ends the call for everybody; null where that is not offered */
export function askToLeave({ onLeave, onEnd }) {
  const dialog = find('#leaving', HTMLDialogElement);
  if (dialog.open) return;
  find('#end-call', HTMLButtonElement).hidden = onEnd === null;
  find('#leaving form', HTMLFormElement).onsubmit = ({ submitter }) => {
    if (!(submitter instanceof HTMLButtonElement)) return;
    if (submitter.value === 'leave') onLeave();
    if (submitter.value === 'end') onEnd?.();
  };
  dialog.showModal();
}

/** The call is over by itself. */
export function stopAsking() {
  find('#leaving', HTMLDialogElement).close();
}
