// Can this browser carry a live RTCPeerConnection to another SFU node?
//
// The new node has another certificate, so ICE and DTLS must both be redone.
// Chromium does both on an ICE restart. Firefox takes the answer without an
// error and never redoes DTLS: it reports `connected` and nothing is decoded. What is
// not proven (Safari) is taken for a no: a new connection is about as
// fast, and right everywhere.

/** The first Chromium that is trusted with it. Measured on 156; older ones were not tried. */
const FIRST_CHROMIUM = 120;

/**
 * @param {{userAgent: string, userAgentData?: {brands: {brand: string, version: string}[]}}} browser `navigator`, or a stand-in
 * @returns {boolean}
 */
export function canMoveLiveConnection(browser) {
  const brand = browser.userAgentData?.brands.find(({ brand }) => brand === 'Chromium');
  if (brand) return Number(brand.version) >= FIRST_CHROMIUM;
  // userAgentData exists in secure contexts only. "CriOS" and "FxiOS" are WebKit.
  const match = /\bChrom(?:e|ium)\/(\d+)/.exec(browser.userAgent);
  return match !== null && Number(match[1]) >= FIRST_CHROMIUM;
}
