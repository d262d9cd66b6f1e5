// How people are asked into the call: by a link, where one leads here, or by a ring.

import { find } from './elements.js';
import { invitationTo } from './invitation.js';
import { say } from './words.js';

/**
 * Offers what works and nothing else.
 * @param {{room: string, key: string, template: string, rings: boolean}} options `key`: of an encrypted call; `template`: of a link, empty where none can be made; `rings`: somebody
 *   can be rung
 */
export function offerInvitation({ room, key, template, rings }) {
  const link = template === '' ? '' : invitationTo(room, key, template);
  const none = link === '';
  find('#invite', HTMLElement).hidden = none && !rings;
  find('#inviting', HTMLElement).hidden = find('#alone-copy', HTMLElement).hidden = none;
  find('#invite-link', HTMLInputElement).value = link;
  find('#invite-how', HTMLElement).textContent = say(key === '' ? 'invite.how' : 'invite.how.key');
  find('#alone-text', HTMLElement).textContent = say(none && !rings ? 'alone.elsewhere' : 'alone');
}
