// The operator's page: the whole cluster from any signaling node, for whoever has an operator's token.

import { find } from '../page/elements.js';
import { showFigures } from './figures.js';
import { isGone, withState } from './node.js';
import { openNode } from './node-sheet.js';
import { NodesView } from './nodes-view.js';
import { refusalText } from './question.js';
import { repeat } from './repeat.js';
import { RingView } from './ring-view.js';
import { openRoom } from './room-sheet.js';
import { RoomsView } from './rooms-view.js';
import { config, devToken, Refusal, Server } from './server.js';
import { wireSheet } from './sheet.js';
import { TimelineView } from './timeline-view.js';
import { say, sayAll } from './words.js';

/** @typedef {import('./node.js').Node} Node */

const EVENTS_MS = 400;
const VIEW_MS = 1000;
/** A list of a thousand nodes is half a megabyte. */
const LARGE = 100;
const LARGE_MS = 5000;
const ROOMS_MS = 2000;
const LOADS_MS = 10_000;
const SOON_MS = 300;
const BEFORE = '24h';
const KEPT = 'holdfast-operator-token';

/** @param {string} problem */
function askForToken(problem) {
  find('#board', HTMLElement).hidden = true;
  find('#sign-in', HTMLElement).hidden = false;
  const line = find('#sign-in-problem', HTMLElement);
  line.textContent = problem;
  line.hidden = problem === '';
  const field = find('#token', HTMLInputElement);
  field.value = '';
  field.focus();
}

/**
 * Runs the page until the token is refused.
 * @param {string} token
 * @param {boolean} kill whether nodes may be killed here
 */
async function show(token, kill) {
  const server = new Server(token);
  // A token that is not good is refused here.
  await server.ask('overview');
  sessionStorage.setItem(KEPT, token);
  find('#sign-in', HTMLElement).hidden = true;
  find('#board', HTMLElement).hidden = false;
  /** @type {Node[]} */
  let nodes = [];
  /** @type {(nodes: Node[]) => void} */
  let paintSheet = () => {};
  let around = { nodes: /** @type {string[]} */ ([]), shares: /** @type {number[]} */ ([]), owners: /** @type {number[]} */ ([]) };
  const ring = new RingView();
  const toRoom = (/** @type {string} */ room) => openRoom(room, {
    server, ring, mediaNodes: () => nodes.filter((node) => node.role === 'sfu' && !isGone(node) && !node.draining).map(({ node }) => node),
  });
  const table = new NodesView(ring, (node) => {
    paintSheet = openNode(node, { server, kill, shareOf: (name) => around.shares[around.nodes.indexOf(name)] ?? 0 });
  });
  const rooms = new RoomsView(server, ring, toRoom);
  const timeline = new TimelineView(toRoom);

  const trouble = find('#trouble', HTMLElement);
  /** @type {Map<string, string>} what each question last came to grief with */
  const troubles = new Map();
  /**
   * @param {string} what
   * @param {() => Promise<void>} turn
   */
  const guarded = (what, turn) => async () => {
    try {
      await turn();
      troubles.delete(what);
    } catch (error) {
      if (error instanceof Refusal && (error.status === 401 || error.status === 403)) {
        sessionStorage.removeItem(KEPT);
        location.reload();
      }
      troubles.set(what, refusalText(error));
    }
    const [first] = troubles.values();
    trouble.hidden = first === undefined;
    trouble.textContent = first ?? '';
  };

  repeat(() => (nodes.length > LARGE ? LARGE_MS : VIEW_MS), guarded('nodes', async () => {
    const [answer, sums] = await Promise.all([server.ask('nodes'), server.ask('overview')]);
    nodes = answer.nodes.map(withState);
    const names = nodes.filter((node) => node.role === 'sfu' && !isGone(node) && !node.draining && !node.suspect && !node.unreachable).map(({ node }) => node).sort().join();
    if (names !== [...around.nodes].sort().join()) {
      around = await server.ask('ring');
      ring.around = around;
    }
    showFigures(sums, nodes);
    ring.show(nodes, sums.rooms);
    table.show(nodes);
    paintSheet(nodes);
    find('#answered', HTMLElement).classList.toggle('mixed', answer.mixedVersions);
    find('#answered', HTMLElement).title = answer.mixedVersions ? say('mixed.versions') : '';
  }));
  rooms.again = repeat(() => ROOMS_MS, guarded('rooms', () => rooms.ask()));
  repeat(() => (nodes.length > 0 ? LOADS_MS : SOON_MS), guarded('loads', async () => {
    const sight = table.inSight;
    if (sight.length > 0) table.loads = (await server.ask(`loads?${sight.map((node) => `node=${encodeURIComponent(node)}`).join('&')}`)).loads;
  }));
  let after = '';
  let more = true;
  repeat(() => (more ? 0 : EVENTS_MS), guarded('events', async () => {
    const answer = await server.ask(after ? `events?after=${after}` : `events?since=${BEFORE}`);
    more = answer.more;
    after = answer.next || after;
    timeline.add(answer.events);
  }));
}

async function start() {
  sayAll();
  document.title = say('title');
  wireSheet();
  const { kill = false, dev } = await config().catch(() => ({ kill: false, dev: false }));
  find('#sign-out', HTMLButtonElement).addEventListener('click', () => {
    sessionStorage.setItem(KEPT, '-');
    location.hash = '';
    location.reload();
  });
  find('#token-form', HTMLFormElement).addEventListener('submit', (event) => {
    event.preventDefault();
    show(find('#token', HTMLInputElement).value.trim(), kill).catch((error) => askForToken(refusalText(error)));
  });
  // A link may bring the token behind the #, which browsers send to nobody.
  const given = new URLSearchParams(location.hash.slice(1)).get('token');
  if (given !== null) history.replaceState(null, '', location.pathname + location.search);
  const kept = sessionStorage.getItem(KEPT);
  const token = given || (kept === '-' ? '' : kept || (dev ? await devToken() : ''));
  if (token === '') askForToken('');
  else await show(token, kill).catch((error) => askForToken(refusalText(error)));
}

await start();
