// The little that is read out of an SDP. Pure.

/** @typedef {{mid: string, kind: string, lines: string[]}} Section */

/**
 * @param {string} sdp
 * @returns {Section[]}
 */
export function sections(sdp) {
  return sdp.split(/^m=/m).slice(1).map((text) => {
    const lines = text.split(/\r\n|\n/);
    const mid = lines.find((line) => line.startsWith('a=mid:'))?.slice('a=mid:'.length) ?? '';
    return { mid, kind: lines[0].split(' ')[0], lines };
  });
}

/**
 * "sha-256 AB:CD:...", case-folded for comparison.
 * @param {string} sdp
 * @returns {string} empty when there is none
 */
export function fingerprint(sdp) {
  const match = /^a=fingerprint:(\S+) (\S+)/m.exec(sdp);
  return match ? `${match[1].toLowerCase()} ${match[2].toUpperCase()}` : '';
}

/**
 * Without the extension for the orientation of what is sent: not everybody who sees it turns the picture, so the browser
 * has to do it.
 * @param {string} sdp
 * @returns {string}
 */
export function turnedByBrowser(sdp) {
  return sdp.split(/^(?=m=)/m).map((section) => (/^a=sendonly/m.test(section)
    ? section.replace(/^a=extmap:\S+ urn:3gpp:video-orientation\r?\n/m, '')
    : section)).join('');
}

/**
 * No node reads the browser's addresses.
 * @param {string} sdp
 */
export function withoutCandidates(sdp) {
  return sdp.replace(/^a=(candidate:.*|end-of-candidates)\r?\n/gm, '');
}

/**
 * The same for as long as one connection answers.
 * @param {string} sdp
 * @returns {string} empty when there is none
 */
export function sessionId(sdp) {
  return /^o=\S+ (\S+)/m.exec(sdp)?.[1] ?? '';
}

/**
 * In their order.
 * @param {Section} section
 * @returns {string[]}
 */
export function sendRids(section) {
  return section.lines.flatMap((line) => {
    const match = /^a=rid:(\S+) send/.exec(line);
    return match ? [match[1]] : [];
  });
}

/**
 * Each with its retransmission SSRC (0 without).
 * @param {Section} section
 * @returns {{ssrc: number, rtxSsrc: number}[]}
 */
export function ssrcs(section) {
  /** @type {Map<number, number>} */
  const rtx = new Map();
  /** @type {Set<number>} */
  const named = new Set();
  for (const line of section.lines) {
    const group = /^a=ssrc-group:FID (\d+) (\d+)/.exec(line);
    if (group) rtx.set(Number(group[1]), Number(group[2]));
    const one = /^a=ssrc:(\d+) /.exec(line);
    if (one) named.add(Number(one[1]));
  }
  const repairs = new Set(rtx.values());
  return [...named].filter((ssrc) => !repairs.has(ssrc)).map((ssrc) => ({ ssrc, rtxSsrc: rtx.get(ssrc) ?? 0 }));
}

/**
 * All sound but that of the first m-line, the microphone, may have two channels: a shared screen's does, and comes in any slot.
 * @param {string} sdp
 */
export function withStereo(sdp) {
  let first = true;
  return sdp.split(/^(?=m=)/m).map((section) => {
    const type = /^a=rtpmap:(\d+) opus\/48000/im.exec(section)?.[1];
    if (!section.startsWith('m=audio') || !type) return section;
    if (first) return (first = false, section);
    return section.replace(new RegExp(`^(a=fmtp:${type} )(?!.*\\bstereo=)(.*)\r\n`, 'm'), '$1$2;stereo=1;sprop-stereo=1\r\n');
  }).join('');
}

/**
 * Offers to ask for lost sound again: browsers can, and no interface but the SDP says so.
 * @param {string} sdp
 */
export function withSoundRepair(sdp) {
  return sdp.split(/^(?=m=)/m).map((section) => {
    const type = /^a=rtpmap:(\d+) opus\/48000/im.exec(section)?.[1];
    const line = `a=rtcp-fb:${type} nack\r\n`;
    if (!section.startsWith('m=audio') || !type || section.includes(line)) return section;
    return section.replace(new RegExp(`^a=rtpmap:${type} .*\r\n`, 'm'), `$&${line}`);
  }).join('');
}

/**
 * The first SSRC of each m-line, with that of its retransmissions (0 without).
 * @param {string} sdp
 * @param {ReadonlySet<string>} mids
 */
export function namedSsrcs(sdp, mids) {
  return sections(sdp).filter(({ mid }) => mids.has(mid)).flatMap((section) => ssrcs(section).slice(0, 1).map((names) => ({ mid: section.mid, ...names })));
}

/**
 * Whether both name the same address of a node.
 * @param {string} one
 * @param {string} other
 */
export function shareAddress(one, other) {
  const addresses = (/** @type {string} */ sdp) => [...sdp.matchAll(/^a=candidate:\S+ \d+ (\S+ )\d+ (\S+ \d+)/gm)].map(([, protocol, address]) => protocol + address);
  const known = new Set(addresses(one));
  return addresses(other).some((address) => known.has(address));
}
