// What only the network can answer.

import { socketUrl } from '../holdfast/address.js';
import { Call, CallError } from '../holdfast/index.js';
import { SUBPROTOCOL } from '../holdfast/protocol.js';
import { randomId } from '../holdfast/random-id.js';
import { wayOf } from './check-verdict.js';
import { api, site } from './site.js';
import { fetchToken } from './tokens.js';

/** @typedef {import('./check-verdict.js').Way} Way */
/** @typedef {{bitsPerSecond: number, loss: number}} Rate */

const ANSWER_MS = 10_000;
const MEDIA_MS = 20_000;
/** A sender begins low. */
const RISE_MS = 5000;
const MEASURED_MS = 4000;

/**
 * How long a request and a socket take. Rejects with `unreachable`, or with `no_socket` where only pages pass.
 * @returns {Promise<number>} ms
 */
export async function tryService() {
  const began = performance.now();
  const answer = await within(ANSWER_MS, fetch(api('config'), { cache: 'no-store' }).catch(() => null));
  if (!answer?.ok) throw new CallError('unreachable');
  const took = performance.now() - began;
  const socket = new WebSocket(socketUrl(site), SUBPROTOCOL);
  const open = await within(ANSWER_MS, new Promise((resolve) => {
    socket.addEventListener('open', () => resolve(true));
    socket.addEventListener('error', () => resolve(false));
  }));
  socket.close();
  if (!open) throw new CallError('no_socket');
  return took;
}

/**
 * Which ways lead to a relay.
 * @param {RTCIceServer[]} servers
 * @returns {Promise<{way: Way, works: boolean}[]>}
 */
export async function tryRelays(servers) {
  /** @type {Map<Way, Promise<boolean>[]>} */
  const tried = new Map();
  for (const { urls, ...credential } of servers) {
    for (const url of [urls].flat().filter((one) => /^turns?:/.test(one))) {
      tried.set(wayOf(url), [...tried.get(wayOf(url)) ?? [], allocates({ urls: [url], ...credential })]);
    }
  }
  return Promise.all([...tried].map(async ([way, answers]) => ({ way, works: (await Promise.all(answers)).includes(true) })));
}

/** @param {RTCIceServer} server */
async function allocates(server) {
  /** @type {RTCPeerConnection | null} */
  let pc = null;
  try {
    const one = new RTCPeerConnection({ iceServers: [server], iceTransportPolicy: 'relay' });
    pc = one;
    const answer = new Promise((resolve) => {
      one.addEventListener('icecandidate', ({ candidate }) => resolve(candidate !== null && candidate.candidate !== ''));
    });
    one.createDataChannel('check');
    await one.setLocalDescription();
    return await within(ANSWER_MS, answer) === true;
  } catch {
    return false; // An address that the browser does not take leads nowhere.
  } finally {
    pc?.close();
  }
}

/**
 * A hidden page draws next to nothing: what is measured then is measured again.
 * @template T
 * @param {() => Promise<T>} measure
 * @param {EventTarget & {readonly hidden: boolean}} [page]
 */
export async function whileSeen(measure, page = document) {
  const turned = () => new Promise((resolve) => { page.addEventListener('visibilitychange', resolve, { once: true }); });
  for (;;) {
    while (page.hidden) await turned();
    let hid = false;
    turned().then(() => { hid = true; });
    const measured = await measure();
    if (!hid) return measured;
  }
}

/** A room of one's own, where one sends a picture to oneself. */
export class Mirror {
  #sender = new Call({ audioSlots: 0, videoSlots: 0, simulcast: false });
  #receiver = new Call({ audioSlots: 0, videoSlots: 1 });
  #noise = new Noise();
  /** What the link allows; who may not send sees nothing either, because nobody else is here. */
  allows = { up: true, down: true };

  /**
   * Rejects with a CallError.
   * @param {string} linkToken
   * @returns {Promise<RTCIceServer[]>} what the service relays with
   */
  async enter(linkToken) {
    const [url, token] = [site, await roomOfOnesOwn(linkToken)];
    const { iceServers = [], permissions } = await this.#sender.join({ url, token, stream: this.#noise.stream });
    await this.#receiver.join({ url, token });
    const up = this.#sender.mayPublish('camera');
    this.allows = { up, down: up && permissions?.subscribe !== false };
    return iceServers;
  }

  /**
   * How media goes; rejects with `media_unreachable`.
   * @returns {Promise<{relayed: boolean, protocol: string, rttMs: number}>}
   */
  async path() {
    const used = this.allows.up ? [this.#sender, this.#receiver] : [this.#receiver];
    if (!await within(MEDIA_MS, Promise.all(used.map(isLive)))) throw new CallError('media_unreachable');
    const stats = await used[0]?.stats();
    return { relayed: stats?.path.relayed ?? false, protocol: stats?.path.protocol ?? '', rttMs: stats?.rttMs ?? 0 };
  }

  /** @returns {Promise<{up: Rate, down: Rate}>} */
  rates() {
    this.#receiver.setView([{ peer: this.#sender.peer, source: 'camera', width: 1280, height: 720 }]);
    return whileSeen(() => this.#measure());
  }

  async #measure() {
    await passed(RISE_MS);
    const [before, began] = [await this.#counts(), performance.now()];
    await passed(MEASURED_MS);
    const [after, seconds] = [await this.#counts(), (performance.now() - began) / 1000];
    const [packets, lost] = [after.packets - before.packets, after.lost - before.lost];
    return {
      up: { bitsPerSecond: (8 * (after.sent - before.sent)) / seconds, loss: after.sentLoss },
      down: { bitsPerSecond: (8 * (after.received - before.received)) / seconds, loss: packets + lost > 0 ? lost / (packets + lost) : 0 },
    };
  }

  leave() {
    this.#sender.leave();
    this.#receiver.leave();
    this.#noise.stop();
  }

  async #counts() {
    const [out, into] = await Promise.all([this.#sender.stats(), this.#receiver.stats()]);
    const slots = Object.values(into?.perSlot ?? {});
    return {
      sent: sum((out?.outbound ?? []).map(({ bytesSent }) => bytesSent)),
      sentLoss: out?.sentLoss ?? 0,
      received: sum(slots.map(({ bytesReceived = 0 }) => bytesReceived)),
      packets: sum(slots.map(({ packetsReceived = 0 }) => packetsReceived)),
      lost: sum(slots.map(({ packetsLost = 0 }) => packetsLost)),
    };
  }
}

/** A picture that cannot be made smaller, so that it takes all of its rate. */
class Noise {
  #canvas = Object.assign(document.createElement('canvas'), { width: 480, height: 270 });
  #timer = setInterval(() => this.#draw(), 50);
  stream = this.#canvas.captureStream(20);

  #draw() {
    const context = this.#canvas.getContext('2d');
    const image = new ImageData(this.#canvas.width, this.#canvas.height);
    const pixels = new Uint32Array(image.data.buffer);
    for (let i = 0; i < pixels.length; i++) pixels[i] = 0xff000000 | (Math.random() * 0xffffff);
    context?.putImageData(image, 0, 0);
  }

  stop() {
    clearInterval(this.#timer);
    for (const track of this.stream.getTracks()) track.stop();
  }
}

/** @param {string} linkToken */
async function roomOfOnesOwn(linkToken) {
  if (linkToken === '') return fetchToken('', `check-${randomId()}`, 'check', false);
  const response = await fetch(api('check'), { method: 'POST', headers: { Authorization: `Bearer ${linkToken}` } }).catch(() => null);
  const body = await response?.json().catch(() => null);
  if (!response?.ok) throw new CallError(body?.code ?? 'unreachable', { message: body?.message });
  return String(body?.token);
}

/** @param {Call} call */
function isLive(call) {
  return new Promise((resolve) => {
    const look = () => call.state === 'live' && resolve(true);
    call.addEventListener('state', look);
    look();
  });
}

/** @param {number[]} numbers */
const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);

/** @param {number} ms */
const passed = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });

/**
 * Null when it is too late.
 * @template T
 * @param {number} ms
 * @param {Promise<T>} promise
 * @returns {Promise<T | null>}
 */
const within = (ms, promise) => Promise.race([promise, passed(ms).then(() => null)]);
