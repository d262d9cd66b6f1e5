// In a development cluster: kills the room's media node, to see the call survive.

import { find } from './elements.js';
import { notice } from './notices.js';
import { api } from './site.js';
import { say } from './words.js';

/** @typedef {import('../holdfast/call.js').Call} Call */

/** Nodes that this page killed. */
const killed = new Set();

/**
 * Returns whether this page killed the node, once for each kill.
 * @param {string} node
 */
export const wasKilled = (node) => killed.delete(node);

/** @param {Call} call */
export async function offerToKill(call) {
  const button = find('#kill', HTMLButtonElement);
  button.hidden = true;
  const config = await fetch(api('config')).then((answer) => answer.json()).catch(() => ({}));
  if (!config.kill || call.state === 'left') return;
  const stop = new AbortController();
  const paint = () => { button.lastElementChild?.replaceChildren(say('kill', { node: call.node })); };
  button.addEventListener('click', async () => {
    button.disabled = true;
    const { node } = call;
    killed.add(node); // The call may have moved before the answer comes.
    try {
      const answer = await fetch(api(`dev/kill?${new URLSearchParams({ node })}`), { method: 'POST', headers: { 'X-Holdfast-Dev': '1' } });
      if (answer.ok) return;
      killed.delete(node);
      notice((await answer.json()).message);
    } catch {
      killed.delete(node);
      notice(say('kill.failed'));
    } finally {
      button.disabled = false;
    }
  }, { signal: stop.signal });
  for (const type of ['state', 'migration']) call.addEventListener(type, paint, { signal: stop.signal });
  call.addEventListener('left', () => {
    stop.abort();
    button.hidden = true;
  }, { once: true });
  paint();
  button.hidden = false;
}
