// Can this browser carry a live RTCPeerConnection to another media node? ICE and DTLS must be redone with another
// certificate. Chromium does both, even without an ICE restart. Firefox rejects another node's answer to an offer without
// one; after one it never redoes DTLS: it reports `connected` and decodes nothing. Unproven browsers count as unable: a
// new connection is right everywhere.

/** The oldest Chromium version that counts as able; older versions were not tried. */
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
