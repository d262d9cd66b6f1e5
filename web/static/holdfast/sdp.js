// Reads from an SDP, and changes in it, the few things that the client needs. Pure.

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
 * Returns the first fingerprint as "sha-256 AB:CD:...", with the algorithm in lower and the digest in upper case, for comparison.
 * @param {string} sdp
 * @returns {string} empty when there is none
 */
export function fingerprint(sdp) {
  const match = /^a=fingerprint:(\S+) (\S+)/m.exec(sdp);
  return match ? `${match[1].toLowerCase()} ${match[2].toUpperCase()}` : '';
}

/**
 * Removes the video-orientation extension from the sections that send. Not every receiver turns the picture, so the sending browser has to.
 * @param {string} sdp
 * @returns {string}
 */
export function turnedByBrowser(sdp) {
  return sdp.split(/^(?=m=)/m).map((section) => (/^a=sendonly/m.test(section)
    ? section.replace(/^a=extmap:\S+ urn:3gpp:video-orientation\r?\n/m, '')
    : section)).join('');
}

/**
 * Removes the browser's candidates from an SDP, because no media node reads them.
 * @param {string} sdp
 */
export function withoutCandidates(sdp) {
  return sdp.replace(/^a=(candidate:.*|end-of-candidates)\r?\n/gm, '');
}

/**
 * Returns the session id of the o= line. It stays the same for as long as one connection answers.
 * @param {string} sdp
 * @returns {string} empty when there is none
 */
export function sessionId(sdp) {
  return /^o=\S+ (\S+)/m.exec(sdp)?.[1] ?? '';
}

/**
 * Returns the rids that the section sends, in their order.
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
 * Returns the section's media SSRCs, each with the SSRC of its retransmissions, which is 0 when there is none.
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
 * Allows two channels in every audio section but the first, the microphone's. A shared screen's sound has two, and may come in any slot.
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
 * Adds NACK for Opus to every audio section, so that lost sound is sent again. Browsers support it, but only the SDP can turn it on.
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
 * Returns the first SSRC of each m-line of `mids`, with the SSRC of its retransmissions, which is 0 when there is none.
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
