import { notice } from './notices.js';
import { invitationTemplate } from './tokens.js';
import { say } from './words.js';

/**
 * @param {string} room
 * @param {string} key of an encrypted call, else empty
 * @param {string} template an address with {room} in the room's place
 */
export function invitationTo(room, key, template) {
  const link = new URL(template.replaceAll('{room}', encodeURIComponent(room)), location.href);
  if (key !== '') link.hash = [link.hash.slice(1), new URLSearchParams({ key })].filter(String).join('&');
  return link.href;
}

/**
 * @param {string} room
 * @param {string} key
 */
export async function copyInvitation(room, key) {
  const template = await invitationTemplate();
  if (template === '') {
    notice(say('invite.none'), { forMs: 0 });
    return;
  }
  const link = invitationTo(room, key, template);
  try {
    await navigator.clipboard.writeText(link);
    notice(say('invite.copied'), { tone: 'good', forMs: 4000 });
  } catch {
    notice(say('invite.send', { link }), { forMs: 0 });
  }
}
