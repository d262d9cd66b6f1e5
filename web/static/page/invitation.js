import { notice } from './notices.js';

/**
 * @param {string} room
 * @param {string} key of an encrypted call, else empty
 */
export function invitationTo(room, key) {
  const link = new URL(location.pathname, location.href);
  link.searchParams.set('room', room);
  if (key !== '') link.hash = new URLSearchParams({ key }).toString();
  return link.href;
}

/**
 * @param {string} room
 * @param {string} key
 */
export async function copyInvitation(room, key) {
  const link = invitationTo(room, key);
  try {
    await navigator.clipboard.writeText(link);
    notice('The link is copied. Send it to whoever should join.', { forMs: 4000 });
  } catch {
    notice(`Send this link to whoever should join: ${link}`, { forMs: 0 });
  }
}
