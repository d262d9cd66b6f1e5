// What this client sends, by SSRC: mid, rid, ssrc and rtxSsrc of its own senders.
//
// Browsers stop sending the MID and RID header extensions once receiver reports
// have acknowledged an SSRC, so after a move the new node could not tell whose packets
// these are. The table goes with the offer. It is learned while the call runs,
// because asking getStats at the moment of a failover would cost the time it saves.

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

  /** Forgets everything: a new RTCPeerConnection has new SSRCs. */
  clear() {
    this.#rows.clear();
  }

  /**
   * Learns from the local description (Firefox names every SSRC there, Chromium
   * only those without simulcast) and from the outbound statistics. What is known stays
   * known: a paused layer vanishes from the statistics of some browsers.
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
      // With simulcast the SSRCs stand in the order of the layers; fewer of them prove nothing.
      if (rids.length > 0 && named.length === rids.length) {
        rids.forEach((rid, index) => this.#put(section.mid, rid, named[index]));
      }
    }
    for (const { mid, rid, ssrc, rtxSsrc } of outbound) {
      if (mid !== '' && ssrc !== 0) this.#put(mid, rid, { ssrc, rtxSsrc: rtxSsrc || repairs.get(ssrc) || 0 });
    }
  }

  /**
   * The `senders` of an offer: a row for each own m-line, or one for each
   * simulcast layer, with the SSRCs that are known.
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
