// From the address, or, in dev, from the cluster.

import { CallError } from '../holdfast/errors.js';
import { api } from './site.js';

/**
 * @param {string} given the address's token
 * @param {string} room
 * @param {string} name
 * @param {boolean} host in dev: whether to run the room
 * @returns {Promise<string>} rejects with CallError
 */
export async function fetchToken(given, room, name, host) {
  if (given) return given;
  const { dev } = await getJson('config');
  if (!dev) throw new CallError('needs_link');
  const { token } = await getJson(`dev/token?${new URLSearchParams({ room, name, identity: identityInDev(name), ...(host && { moderate: '' }) })}`);
  return token;
}

/**
 * In dev a name is an identity: who goes by it can be rung by it, and two tabs of one name are one person.
 * @param {string} name
 */
export const identityInDev = (name) => name.trim().toLowerCase().replace(/\s+/g, '-').replace(/[^\p{L}\p{M}\p{N}\p{P}\p{S}]/gu, '');

export async function inDevelopment() {
  const { dev } = await getJson('config').catch(() => ({}));
  return dev === true;
}

/**
 * Where an invitation leads, with {room} in the room's place; empty where this page can make none.
 * @returns {Promise<string>}
 */
export async function invitationTemplate() {
  const { dev, invite } = await getJson('config').catch(() => ({}));
  return invite || (dev ? `${location.pathname}?room={room}` : '');
}

/**
 * What a token says. It is the server that judges it.
 * @param {string} token
 * @returns {{room: string, name: string, microphone: boolean, camera: boolean, message: boolean}} `message`: to anybody
 */
export function readToken(token) {
  const claims = claimsOf(token);
  /** @type {{room?: string, canPublish?: boolean, canPublishSources?: string[], canMessage?: boolean}} */
  const { room = '', canPublish = true, canPublishSources = [], canMessage = false } = claims.video ?? {};
  /** @param {string} source */
  const may = (source) => canPublish && (canPublishSources.length === 0 || canPublishSources.includes(source));
  return { room: String(room), name: String(claims.name ?? ''), microphone: may('microphone'), camera: may('camera'), message: canMessage === true };
}

/** @param {string} token */
function claimsOf(token) {
  try {
    const bytes = Uint8Array.from(atob(token.split('.')[1].replaceAll('-', '+').replaceAll('_', '/')), (c) => c.charCodeAt(0));
    return JSON.parse(new TextDecoder().decode(bytes)) ?? {};
  } catch {
    return {};
  }
}

/** @param {string} path under api/v1/ */
async function getJson(path) {
  let response;
  try {
    response = await fetch(api(path));
  } catch (cause) {
    throw new CallError('unreachable', { cause, retryable: true });
  }
  const body = await response.json().catch(() => ({}));
  if (!response.ok) throw new CallError(body.code ?? 'unreachable', { message: body.message, retryable: response.status >= 500 });
  return body;
}
