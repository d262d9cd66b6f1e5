// What this client sends, by SSRC. Browsers stop sending the MID and RID extensions once an SSRC is
// acknowledged, so an offer to a new node names them. They are learned while the call runs: getStats takes time
// at a failover.

import { sections, sendRids, ssrcs } from './sdp.js';

/** @typedef {import('./protocol.js').Sender} Sender */
/** @typedef {import('./protocol.js').Source} Source */
/** @typedef {import('./stats.js').OutboundStats} OutboundStats */

export class SsrcTable {
  /**
   * By mid, then by rid ('' without simulcast).
   * @type {Map<string, Map<string, {ssrc: number, rtxSsrc: number}>>}
   */
  #rows = new Map();

  /** Forgets every SSRC, because a new RTCPeerConnection has new ones. */
  clear() {
    this.#rows.clear();
  }

  /**
   * Learns SSRCs from the local description and from the statistics. Firefox names every SSRC in the description, Chromium only those without
   * simulcast. Known SSRCs stay, because some browsers drop paused layers from the statistics.
   * @param {string} localSdp
   * @param {Iterable<OutboundStats>} outbound
   */
  learn(localSdp, outbound) {
    /** @type {Map<number, number>} */
    const repairs = new Map();
    for (const section of sections(localSdp)) {
      const named = ssrcs(section);
      for (const { ssrc, rtxSsrc } of named) repairs.set(ssrc, rtxSsrc);
      const rids = sendRids(section);
      if (rids.length === 0 && named.length > 0) this.#put(section.mid, '', named[0]);
      // The SSRCs stand in the order of the layers. When there are fewer SSRCs than layers, it is unknown which layer each belongs to.
      if (rids.length > 0 && named.length === rids.length) {
        rids.forEach((rid, index) => this.#put(section.mid, rid, named[index]));
      }
    }
    for (const { mid, rid, ssrc, rtxSsrc } of outbound) {
      if (mid !== '' && ssrc !== 0) this.#put(mid, rid, { ssrc, rtxSsrc: rtxSsrc || repairs.get(ssrc) || 0 });
    }
  }

  /**
   * A row for each own m-line, or for each simulcast layer, with the SSRCs that are known.
   * @param {string} localSdp
   * @param {Map<string, Source>} sources by mid
   * @returns {Sender[]}
   */
  senders(localSdp, sources) {
    return sections(localSdp).flatMap((section) => {
      const source = sources.get(section.mid);
      if (!source) return [];
      const rids = sendRids(section);
      return (rids.length > 0 ? rids : ['']).map((rid) => this.#sender(section.mid, source, rid));
    });
  }

  /**
   * @param {string} mid
   * @param {Source} source
   * @param {string} rid
   * @returns {Sender}
   */
  #sender(mid, source, rid) {
    /** @type {Sender} */
    const sender = { mid, source };
    if (rid !== '') sender.rid = rid;
    const row = this.#rows.get(mid)?.get(rid);
    if (row) sender.ssrc = row.ssrc;
    if (row?.rtxSsrc) sender.rtxSsrc = row.rtxSsrc;
    return sender;
  }

  /**
   * @param {string} mid
   * @param {string} rid
   * @param {{ssrc: number, rtxSsrc: number}} row
   */
  #put(mid, rid, row) {
    const rows = this.#rows.get(mid) ?? new Map();
    rows.set(rid, row);
    this.#rows.set(mid, rows);
  }
}
