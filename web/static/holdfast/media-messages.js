/**
 * Hands a server's message about the media connection to `media`. Messages of other types are ignored.
 * @param {import('./media.js').Media} media
 * @param {import('./protocol.js').ServerMessage} message
 */
export function tellMedia(media, message) {
  switch (message.type) {
    case 'answer':
      media.offers.answered(message);
      break;
    case 'offer-rejected':
      media.offers.rejected(message);
      break;
    case 'ice-servers':
      media.ice.heard(message);
      break;
    case 'slots':
      media.goesOn(message);
      media.heardSlots(message.slots, message.lacks);
      break;
    case 'restart':
      media.restart(message);
      break;
    case 'settled':
      media.settled(message);
      break;
    case 'reoffer':
      media.reoffer(message);
      break;
    case 'rests':
      media.rest(message);
      break;
    default:
  }
}
