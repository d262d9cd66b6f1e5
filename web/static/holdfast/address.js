import { CallError } from './errors.js';

/**
 * Throws a CallError for what is no http(s) or ws(s) address.
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
