// An encrypted frame: a cover, a header, and what AES-GCM makes of the frame. Pure, but for the browser's crypto.
//
//   cover    what the RTP packetizer, media nodes and decoders without the key look at; see coverOf
//   header   1 byte: version (high 4 bits) and length of the counter (low 4 bits); 8 bytes: key id; 1 to 8 bytes: counter
//   the rest ciphertext and tag of the whole frame; cover and header are authenticated
//
// As in SFrame (RFC 9605), a sender draws a random key id for each of its transforms, derives that id's key from the
// call's secret, and counts its frames. So no nonce is used twice, whoever else has the secret. Replays are not detected.

/** @typedef {'audio' | 'video'} Kind */
/** @typedef {{cover: number, keyId: string, counter: Uint8Array, body: number}} Header `cover` and `body` are where the header and the ciphertext begin */

const VERSION = 1;
const KEY_ID_BYTES = 8;
const TAG_BYTES = 16;
/** Of a VP8 frame: its tag, and in a keyframe also the start code and the size (RFC 6386 section 9.1). */
const DELTA_BYTES = 3;
const KEYFRAME_BYTES = 10;
/** An Opus packet of no frames, which every decoder refuses: silence, not noise (RFC 6716 section 3.2.5). */
const SOUND = [0xff, 0x00];
/** How many senders' keys are kept. */
const KEPT_KEYS = 64;
/** The least length of a secret in bytes. */
export const SECRET_BYTES = 16;

/** @param {Uint8Array} frame of VP8 */
const isKeyframe = (frame) => (frame[0] & 1) === 0;

/**
 * A VP8 tag with a first partition longer than any frame: decoders refuse it. It still says whether the frame is a
 * keyframe, and of which size, because nodes and depacketizers read that.
 * @param {Uint8Array} frame
 * @param {Kind} kind
 * @returns {Uint8Array}
 */
export function coverOf(frame, kind) {
  if (kind === 'audio') return Uint8Array.from(SOUND);
  if (!isKeyframe(frame)) return Uint8Array.of(0xf1, 0xff, 0xff);
  return Uint8Array.of(0xf0, 0xff, 0xff, ...frame.subarray(DELTA_BYTES, KEYFRAME_BYTES));
}

/**
 * How long the cover of a sealed frame is, 0 when there is none.
 * @param {Uint8Array} data
 * @param {Kind} kind
 */
function coverBytes(data, kind) {
  if (kind === 'audio') return data.length >= 2 && SOUND.every((byte, i) => data[i] === byte) ? SOUND.length : 0;
  if (data.length < DELTA_BYTES || (data[0] | 1) !== 0xf1 || data[1] !== 0xff || data[2] !== 0xff) return 0;
  return isKeyframe(data) ? KEYFRAME_BYTES : DELTA_BYTES;
}

/**
 * @param {Uint8Array} data
 * @param {Kind} kind
 * @returns {Header | 'clear' | 'damaged'} `clear`: not encrypted at all
 */
export function parse(data, kind) {
  const cover = coverBytes(data, kind);
  if (cover === 0) return 'clear';
  const first = data[cover];
  const count = first & 0x0f;
  const body = cover + 1 + KEY_ID_BYTES + count;
  if (first >> 4 !== VERSION || count < 1 || count > 8 || data.length < body + TAG_BYTES) return 'damaged';
  const id = data.subarray(cover + 1, cover + 1 + KEY_ID_BYTES);
  return { cover, keyId: hex(id), counter: data.subarray(body - count, body), body };
}

/** @param {Uint8Array} bytes */
const hex = (bytes) => [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('');

/**
 * @param {Uint8Array} secret
 * @returns {Promise<CryptoKey>}
 */
const importSecret = (secret) => crypto.subtle.importKey('raw', secret, 'HKDF', false, ['deriveKey']);

/**
 * @param {CryptoKey} secret
 * @param {string} keyId
 * @param {'encrypt' | 'decrypt'} use
 */
const deriveKey = (secret, keyId, use) => crypto.subtle.deriveKey(
  { name: 'HKDF', hash: 'SHA-256', salt: new Uint8Array(), info: new TextEncoder().encode(`holdfast sealed frame ${VERSION} ${keyId}`) },
  secret,
  { name: 'AES-GCM', length: 256 },
  false,
  [use],
);

/** @param {Uint8Array} counter big-endian */
function nonceOf(counter) {
  const nonce = new Uint8Array(12);
  nonce.set(counter, nonce.length - counter.length);
  return nonce;
}

/** Encrypts the frames of one sender. */
export class Sealer {
  #kind;
  #id = crypto.getRandomValues(new Uint8Array(KEY_ID_BYTES));
  #key;
  #frames = 0;

  /**
   * @param {Uint8Array} secret
   * @param {Kind} kind
   */
  constructor(secret, kind) {
    this.#kind = kind;
    this.#key = importSecret(secret).then((imported) => deriveKey(imported, hex(this.#id), 'encrypt'));
  }

  /**
   * @param {Uint8Array} frame
   * @returns {Promise<Uint8Array>}
   */
  async seal(frame) {
    const counter = bytesOf(this.#frames++);
    const cover = coverOf(frame, this.#kind);
    const head = Uint8Array.of(...cover, (VERSION << 4) | counter.length, ...this.#id, ...counter);
    const sealed = await crypto.subtle.encrypt({ name: 'AES-GCM', iv: nonceOf(counter), additionalData: head }, await this.#key, frame);
    const data = new Uint8Array(head.length + sealed.byteLength);
    data.set(head);
    data.set(new Uint8Array(sealed), head.length);
    return data;
  }
}

/**
 * Returns the number's bytes, big-endian and as few as possible.
 * @param {number} n a safe integer
 */
function bytesOf(n) {
  const bytes = [];
  do {
    bytes.unshift(n % 256);
    n = Math.floor(n / 256);
  } while (n > 0);
  return Uint8Array.from(bytes);
}

/** Decrypts what one receiver gets, of whoever is shown there. */
export class Opener {
  #kind;
  #secret;
  /** @type {Map<string, Promise<CryptoKey>>} */
  #keys = new Map();

  /**
   * @param {Uint8Array} secret
   * @param {Kind} kind
   */
  constructor(secret, kind) {
    this.#kind = kind;
    this.#secret = importSecret(secret);
  }

  /**
   * @param {Uint8Array} data
   * @returns {Promise<Uint8Array | 'clear' | 'damaged' | 'wrong-key'>} `wrong-key`: or changed on its way
   */
  async open(data) {
    const header = parse(data, this.#kind);
    if (typeof header === 'string') return header;
    const { keyId, counter, body } = header;
    try {
      const opened = await crypto.subtle.decrypt(
        { name: 'AES-GCM', iv: nonceOf(counter), additionalData: data.subarray(0, body) },
        await this.#key(keyId),
        data.subarray(body),
      );
      return new Uint8Array(opened);
    } catch {
      return 'wrong-key';
    }
  }

  /** @param {string} keyId */
  #key(keyId) {
    const key = this.#keys.get(keyId) ?? this.#secret.then((secret) => deriveKey(secret, keyId, 'decrypt'));
    this.#keys.delete(keyId); // To the end, as the newest.
    this.#keys.set(keyId, key);
    const [oldest] = this.#keys.keys();
    if (this.#keys.size > KEPT_KEYS) this.#keys.delete(oldest);
    return key;
  }
}
