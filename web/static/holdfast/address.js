import { CallError } from './errors.js';

/**
 * Returns the WebSocket address of an http, https, ws or wss address, with the path /ws when none is given. A relative address is resolved
 * against the page's. Throws a CallError `bad_url` for every other address.
 * @param {string | URL} url
 * @returns {string}
 */
export function socketUrl(url) {
  let address;
  try {
    address = new URL(url, globalThis.location?.href);
  } catch (cause) {
    throw new CallError('bad_url', { cause });
  }
  if (!/^(http|ws)s?:$/.test(address.protocol)) throw new CallError('bad_url');
  address.protocol = address.protocol.replace('http', 'ws');
  if (address.pathname === '/') address.pathname = '/ws';
  address.hash = '';
  return address.href;
}
