// From the address, or, in dev, from the cluster.

import { CallError } from '../holdfast/index.js';

/**
 * @param {string} given the address's token
 * @param {string} room
 * @param {string} name
 * @returns {Promise<string>} rejects with CallError
 */
export async function fetchToken(given, room, name) {
  if (given) return given;
  const { dev } = await getJson('/api/v1/config');
  if (!dev) {
    throw new CallError('bad_token', { message: 'Joining needs an access token. Open the link that your application gave you.' });
  }
  const { token } = await getJson(`/api/v1/dev/token?${new URLSearchParams({ room, name })}`);
  return token;
}

export async function inDevelopment() {
  const { dev } = await getJson('/api/v1/config').catch(() => ({}));
  return dev === true;
}

/** @param {string} path */
async function getJson(path) {
  let response;
  try {
    response = await fetch(path);
  } catch (cause) {
    throw new CallError('unreachable', { cause, retryable: true });
  }
  const body = await response.json().catch(() => ({}));
  if (!response.ok) throw new CallError(body.code ?? 'unreachable', { message: body.message, retryable: response.status >= 500 });
  return body;
}
