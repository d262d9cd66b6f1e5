import { notice } from './notices.js';

/** @param {string} room */
export function invitationTo(room) {
  const link = new URL(location.pathname, location.href);
  link.searchParams.set('room', room);
  return link.href;
}

/** @param {string} room */
export async function copyInvitation(room) {
  const link = invitationTo(room);
  try {
    await navigator.clipboard.writeText(link);
    notice('The link is copied. Send it to whoever should join.', { forMs: 4000 });
  } catch {
    notice(`Send this link to whoever should join: ${link}`, { forMs: 0 });
  }
}
