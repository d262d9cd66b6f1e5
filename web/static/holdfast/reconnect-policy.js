const CEILING_MS = 5000;

/**
 * The first try comes almost at once, spread a little, because everybody whom a dead node served comes together. Then
 * the pause doubles, and half of it is random.
 * @param {number} tries how many tries in a row have ended without a session
 * @param {() => number} [random] 0 to 1
 * @returns {number} milliseconds to wait before the next try
 */
export function reconnectDelayMs(tries, random = Math.random) {
  if (tries <= 0) return Math.round(120 * random());
  const span = Math.min(CEILING_MS, 200 * 2 ** Math.min(tries - 1, 16));
  return Math.round(span / 2 + (span / 2) * random());
}
