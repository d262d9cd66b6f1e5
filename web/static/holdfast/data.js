// Data channels of a call: messages between the people in the room, over the media node.

import { checkData } from './arguments.js';
import { decodeData, encodeData } from './data-packet.js';
import { CallError } from './errors.js';

/** @typedef {{to?: string[], topic?: string, reliable?: boolean}} DataOptions `to` has peers (everybody else unless given); `reliable` is true unless given */
/** @typedef {{peer: string, identity: string, topic: string, payload: Uint8Array, reliable: boolean}} DataMessage `peer` and `identity` are the sender's, and empty for an application's server */
/** @typedef {{reliable: RTCDataChannel, lossy: RTCDataChannel}} Pair */

/** The ids that the media node knows: its docs/PROTOCOL.md. */
const RELIABLE = 100;
const LOSSY = 101;
/** What a media node takes of one message, with what is around the payload. */
const PACKET_BYTES = 16 << 10;
/** So much may wait in the browser; more is not sent. */
const WAITING_BYTES = 1 << 20;
/** So much reliable data waits until the channels are open. */
const EARLY_BYTES = 64 << 10;

export class Data {
  #enabled;
  #heard;
  #changed;
  #may;
  /**
   * The channels of the connections, the newest last.
   * @type {Pair[]}
   */
  #pairs = [];
  /** @type {Uint8Array[]} */
  #early = [];
  #wasOpen = false;

  /**
   * @param {boolean} enabled
   * @param {{heard: (message: DataMessage) => void, changed: (open: boolean) => void, may: () => boolean}} call
   */
  constructor(enabled, { heard, changed, may }) {
    this.#enabled = enabled;
    this.#heard = heard;
    this.#changed = changed;
    this.#may = may;
  }

  /** Whether messages go out at once. It stays true while the connection moves to another node, although what is sent then may be lost. */
  get open() {
    return this.#newest !== undefined;
  }

  get #newest() {
    return [...this.#pairs].reverse().find(({ reliable, lossy }) => reliable.readyState === 'open' && lossy.readyState === 'open');
  }

  /**
   * Sends a message to the others in the room, or to some of them. Returns false when it is not sent: the call has no `data`, too much waits, or
   * the message is lossy and the channels are not open. Who has no open channels misses it. Throws a CallError: `not_sent` when the token does not
   * allow it, `data_too_long` for more than 15 KiB, and `bad_argument`.
   * @param {Uint8Array | string} payload a text is sent as UTF-8
   * @param {DataOptions} [options]
   */
  send(payload, options = {}) {
    const message = checkData(payload, options);
    if (!this.#may()) throw new CallError('not_sent');
    const packet = encodeData(message);
    if (packet.length > PACKET_BYTES) throw new CallError('data_too_long'); // Because of whom it is for.
    const pair = this.#newest;
    if (!pair) return this.#enabled && message.reliable && this.#keep(packet);
    const channel = message.reliable ? pair.reliable : pair.lossy;
    if (channel.bufferedAmount + packet.length > WAITING_BYTES) return false;
    channel.send(packet);
    return true;
  }

  /** @param {Uint8Array} packet */
  #keep(packet) {
    if (this.#early.reduce((sum, { length }) => sum + length, packet.length) > EARLY_BYTES) return false;
    this.#early.push(packet);
    return true;
  }

  /** @param {RTCPeerConnection} pc a new connection, before its first offer */
  adopt(pc) {
    const reliable = pc.createDataChannel('_reliable', { negotiated: true, id: RELIABLE });
    const lossy = pc.createDataChannel('_lossy', { negotiated: true, id: LOSSY, ordered: false, maxRetransmits: 0 });
    for (const channel of [reliable, lossy]) {
      channel.binaryType = 'arraybuffer';
      channel.addEventListener('open', () => this.#refresh());
      channel.addEventListener('close', () => this.#refresh());
      channel.addEventListener('message', ({ data }) => {
        const read = data instanceof ArrayBuffer ? decodeData(new Uint8Array(data)) : null;
        if (read) this.#heard({ ...read, reliable: channel === reliable });
      });
    }
    this.#pairs = [...this.#pairs.filter((pair) => pair.reliable.readyState !== 'closed'), { reliable, lossy }];
  }

  #refresh() {
    const pair = this.#newest;
    if (pair) for (const packet of this.#early.splice(0)) pair.reliable.send(packet);
    if (this.open === this.#wasOpen) return;
    this.#wasOpen = this.open;
    this.#changed(this.#wasOpen);
  }
}
