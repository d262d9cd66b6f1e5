import { CallError } from './errors.js';

/**
 * Returns the WebSocket address of an http, https, ws or wss address. Its path may be empty, end with /, or end with /ws: that is where signaling
 * nodes answer, perhaps behind a prefix of a proxy. A relative address is resolved against the page's. Throws a CallError `bad_url` for any other.
 * @param {unknown} url
 * @returns {string}
 */
export function socketUrl(url) {
  let address;
  try {
    const text = typeof url === 'string' ? url : /** @type {{href?: unknown} | null | undefined} */ (url)?.href; // A URL, perhaps of another frame.
    if (typeof text !== 'string' || text === '') throw new TypeError('no address');
    address = new URL(text, globalThis.location?.href);
  } catch (cause) {
    throw new CallError('bad_url', { cause });
  }
  if (!/^(http|ws)s?:$/.test(address.protocol)) throw new CallError('bad_url');
  address.protocol = address.protocol.replace('http', 'ws');
  if (address.pathname.endsWith('/')) address.pathname += 'ws';
  if (!address.pathname.endsWith('/ws')) throw new CallError('bad_url', { message: `The address of the server is not valid: its path is ${address.pathname}. It ends with / or with /ws.` });
  address.hash = '';
  return address.href;
}

/**
 * Whether a server says that nothing is at a WebSocket address under a path of its host. False at the root, where signaling nodes always answer;
 * when no server answers; and when a page of this origin may not read the answer.
 * @param {string} address of socketUrl
 */
export async function leadsNowhere(address) {
  const url = new URL(address);
  if (url.pathname === '/ws') return false;
  url.protocol = url.protocol.replace('ws', 'http');
  return fetch(url, { credentials: 'omit', cache: 'no-store' }).then(({ status }) => status === 404, () => false);
}

/** @param {string} address */
export const nowhere = (address) => new CallError('bad_url', { message: `The server has nothing at ${new URL(address).pathname}. Check the path of its address.` });
