// Asks this signaling node, which answers for the whole cluster. docs/API.md has each request.

/** Why a request was refused. `code` is one of docs/API.md, `unreachable`, or empty. */
export class Refusal extends Error {
  /**
   * @param {string} code
   * @param {string} message
   * @param {number} status 0: no answer
   */
  constructor(code, message, status) {
    super(message);
    this.code = code;
    this.status = status;
  }
}

const api = new URL('../api/v1/', document.baseURI);

export class Server {
  #token;

  /** @param {string} token */
  constructor(token) {
    this.#token = token;
  }

  /** @param {string} path under /api/v1/ */
  ask(path) {
    return this.order('GET', path);
  }

  /**
   * @param {string} method
   * @param {string} path
   * @param {object} [body]
   * @returns {Promise<any>}
   */
  async order(method, path, body) {
    /** @type {Record<string, string>} */
    const headers = { Authorization: `Bearer ${this.#token}`, 'X-Holdfast-Dev': 'operator' };
    if (body) headers['Content-Type'] = 'application/json';
    const answer = await fetch(new URL(path, api), { method, headers, body: body ? JSON.stringify(body) : undefined, cache: 'no-store' })
      .catch(() => Promise.reject(new Refusal('unreachable', '', 0)));
    const text = await answer.text();
    let said;
    try {
      said = JSON.parse(text);
    } catch {
      said = { message: text };
    }
    if (!answer.ok) throw new Refusal(said.code ?? '', said.message ?? '', answer.status);
    return said;
  }
}

/**
 * In a development cluster, a page of this machine gets an operator's token for the asking.
 * @returns {Promise<string>} empty elsewhere
 */
export async function devToken() {
  const answer = await fetch(new URL('dev/operator', api), { method: 'POST', headers: { 'X-Holdfast-Dev': 'operator' } }).catch(() => null);
  if (!answer?.ok) return '';
  return answer.json().then((said) => said.token, () => '');
}

/** @returns {Promise<{dev: boolean, kill?: boolean}>} */
export const config = () => fetch(new URL('config', api)).then((answer) => answer.json());

/** @param {string} room a name may hold slashes */
export const roomPath = (room) => `rooms/${encodeURIComponent(room)}`;
