const CEILING_MS = 5000;

/**
 * Returns the pause before the next try to reconnect. The first try comes almost at once, spread over 120 ms, because all clients of a dead node
 * reconnect together. Each later pause doubles up to the ceiling, and half of it is random.
 * @param {number} tries how many tries in a row have ended without a session
 * @param {() => number} [random] 0 to 1
 * @returns {number} milliseconds to wait before the next try
 */
export function reconnectDelayMs(tries, random = Math.random) {
  if (tries <= 0) return Math.round(120 * random());
  const span = Math.min(CEILING_MS, 200 * 2 ** Math.min(tries - 1, 16));
  return Math.round(span / 2 + (span / 2) * random());
}
