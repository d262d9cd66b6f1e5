// Messages on data channels: LiveKit's DataPacket in protobuf, of which a page of ours reads and writes what a user sends.

/**
 * @typedef {{payload: Uint8Array, topic: string, peer: string, identity: string}} UserData `peer` and `identity` are the sender's, and empty for a server's
 */

/** LiveKit's id of a participant is this and the peer's id. */
const SID = 'PA_';

const KIND = 1;
const USER = 2;
const user = { sid: 1, payload: 2, to: 3, topic: 4, identity: 5 };

const VARINT = 0;
const SIZED = 2;
/** The bytes of the wire types with a fixed size. */
const FIXED = new Map([[1, 8], [5, 4]]);

/**
 * @param {{payload: Uint8Array, topic: string, to: readonly string[], reliable: boolean}} message `to` has peers; none stands for everybody
 * @returns {Uint8Array}
 */
export function encodeData({ payload, topic, to, reliable }) {
  const parts = [sized(user.payload, payload), ...to.map((peer) => sized(user.to, utf8(SID + peer)))];
  if (topic) parts.push(sized(user.topic, utf8(topic)));
  const packet = sized(USER, joined(parts));
  return reliable ? packet : joined([new Uint8Array([KIND << 3 | VARINT, 1]), packet]);
}

/**
 * Returns what a user sent; null for anything else, such as a packet of a text stream of LiveKit's clients.
 * @param {Uint8Array} packet
 * @returns {UserData | null}
 */
export function decodeData(packet) {
  const inner = fields(packet)?.get(USER);
  const read = inner && fields(inner);
  if (!read) return null;
  const text = (/** @type {number} */ number) => new TextDecoder().decode(read.get(number) ?? new Uint8Array());
  const sid = text(user.sid);
  return {
    payload: read.get(user.payload) ?? new Uint8Array(), topic: text(user.topic), identity: text(user.identity), peer: sid.startsWith(SID) ? sid.slice(SID.length) : '',
  };
}

/** @param {string} text */
const utf8 = (text) => new TextEncoder().encode(text);

/** @param {readonly Uint8Array[]} parts */
function joined(parts) {
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

/**
 * @param {number} number
 * @param {Uint8Array} value
 */
function sized(number, value) {
  const head = [number << 3 | SIZED];
  let length = value.length;
  for (; length > 127; length >>>= 7) head.push(length & 127 | 128);
  return joined([new Uint8Array([...head, length]), value]);
}

/**
 * Returns the last value of each field that has a length; null for what is no protobuf.
 * @param {Uint8Array} message
 * @returns {Map<number, Uint8Array> | null}
 */
function fields(message) {
  const read = new Map();
  let at = 0;
  const varint = () => {
    for (let value = 0, shift = 1; at < message.length; shift *= 128) {
      const byte = message[at++] ?? 0;
      value += (byte & 127) * shift;
      if (byte < 128) return value;
    }
    return NaN;
  };
  while (at < message.length) {
    const tag = varint();
    const type = tag % 8;
    if (type === VARINT) {
      if (Number.isNaN(varint())) return null;
    } else if (type === SIZED) {
      const length = varint();
      if (!(length <= message.length - at)) return null;
      read.set(Math.floor(tag / 8), message.subarray(at, at += length));
    } else {
      at += FIXED.get(type) ?? NaN;
      if (!(at <= message.length)) return null;
    }
  }
  return read;
}
