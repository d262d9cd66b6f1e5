// What the address says.

/**
 * The token, and the key of an encrypted call, stand behind the #, which browsers send to nobody. They are taken out of
 * the address at once; the history keeps them for a reload.
 * @returns {{token: string, key: string, keyRoom: string}} `keyRoom`: whose key it is; empty of a link's, which is of the room that the link leads to
 */
export function takeSecrets() {
  const address = new URL(location.href);
  const given = new URLSearchParams(address.hash.slice(1));
  const kept = history.state ?? {};
  const linkKey = given.get('key') ?? '';
  const secrets = { token: given.get('token') || String(kept.token ?? ''), key: linkKey || String(kept.key ?? ''), keyRoom: linkKey ? '' : String(kept.keyRoom ?? '') };
  if (address.hash !== '' || address.searchParams.has('token')) {
    address.hash = '';
    address.searchParams.delete('token');
    history.replaceState(secrets, '', address);
  }
  return secrets;
}

/**
 * @param {string} search
 * @returns {{room: string, name: string, host: boolean, autojoin: boolean, width: number, height: number, fps: number, simulcast: boolean, audioSlots: number, videoSlots: number, moveLive: boolean | undefined, videoCodec: import('../holdfast/call-options.js').VideoCodec, scalabilityMode: string, rejectAnswers: number}}
 */
export function readParameters(search) {
  const query = new URLSearchParams(search);
  /**
   * @param {string} name
   * @param {number} otherwise
   * @param {number} least
   * @param {number} most
   */
  const number = (name, otherwise, least, most) => {
    const value = Number.parseInt(query.get(name) ?? '', 10);
    return Number.isNaN(value) ? otherwise : Math.min(Math.max(value, least), most);
  };
  const codecs = /** @type {const} */ (['VP8', 'VP9', 'AV1', 'H264']);
  return {
    room: query.get('room') ?? '',
    name: query.get('name') ?? '',
    host: query.get('host') === '1',
    autojoin: query.get('autojoin') === '1',
    width: number('width', 960, 16, 3840),
    height: number('height', 540, 16, 2160),
    fps: number('fps', 30, 1, 60),
    simulcast: query.get('simulcast') !== '0',
    audioSlots: number('audio', 6, 0, 32),
    videoSlots: number('video', 16, 0, 32),
    moveLive: query.has('restart') ? query.get('restart') === '1' : undefined,
    videoCodec: codecs.find((codec) => codec === query.get('codec')) ?? 'VP8',
    scalabilityMode: query.get('scalability') ?? '',
    rejectAnswers: number('rejectAnswers', 0, 0, 10),
  };
}
