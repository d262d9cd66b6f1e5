// The STUN and TURN servers of the present signaling node. Their credentials expire, so new ones are requested in time.

/** New credentials are requested after this share of the lifetime of the present ones. */
const RENEW_AT = 0.75;
const MAX_DELAY_MS = 2 ** 31 - 1; // What a timer takes.

export class IceServers {
  /** @type {RTCIceServer[]} */
  list = [];
  #ask;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;

  /** @param {() => void} ask for an `ice-servers` message */
  constructor(ask) {
    this.#ask = ask;
  }

  /**
   * Takes over the servers of a message, and returns whether their addresses differ from those known before. A message of an older
   * node names no servers: the client then keeps those that it has.
   * @param {{iceServers?: RTCIceServer[], iceServersForMs?: number}} message
   */
  heard({ iceServers, iceServersForMs = 0 }) {
    if (!iceServers) return false;
    const before = JSON.stringify(this.list.map(({ urls }) => urls));
    this.list = iceServers;
    clearTimeout(this.#timer);
    if (iceServersForMs > 0) this.#timer = setTimeout(() => this.#ask(), Math.min(iceServersForMs * RENEW_AT, MAX_DELAY_MS));
    return before !== JSON.stringify(iceServers.map(({ urls }) => urls));
  }

  close() {
    clearTimeout(this.#timer);
  }
}

/**
 * Calls `restart` when the connection runs over a relay, or has no path. The relay belongs to a former signaling node, which may be dead or
 * draining, and an ICE restart finds the present node's relay or a direct path. A connection over TCP has no path once its relay has died.
 * @param {import('./transport.js').Transport | null} transport
 * @param {(transport: import('./transport.js').Transport) => void} restart
 */
export async function leaveRelay(transport, restart) {
  const stats = await transport?.stats().catch(() => null);
  if (transport && stats && (stats.transport.path.relayed || !stats.transport.path.protocol)) restart(transport);
}
