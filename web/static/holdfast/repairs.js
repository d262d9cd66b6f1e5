// What is done when a stream is not shown here, or when the media node cannot forward what this client sends.

import { COMMON_CODEC } from './connections.js';
import { CallError } from './errors.js';
import { ReofferPolicy } from './reoffer-policy.js';

/** @typedef {import('./protocol.js').How} How */

/**
 * @typedef {object} Surroundings
 * @property {import('./connections.js').Connections} connections
 * @property {(message: {type: 'refresh', mids: string[]}) => void} send
 * @property {(reason: 'frozen' | 'asked' | 'prepared', how: How | '') => void} renew makes a new offer; not where `how` is empty
 * @property {(error: CallError) => void} alarm
 */

export class Repairs {
  #around;
  #reoffers = new ReofferPolicy();

  /** @param {Surroundings} around */
  constructor(around) {
    this.#around = around;
  }

  /**
   * Does what the media node asks for with a `reoffer`. A `silent` source whose device gives no media is no reason for an offer.
   * @param {import('./protocol.js').Reoffer} order
   */
  asked({ mids, reason }) {
    const { connections, renew } = this.#around;
    if (reason === 'silent' && connections.giveNothing(mids)) return;
    if (reason === 'unreached') renew('prepared', 'restart');
    else if (reason === 'codec') this.#sendCommonCodec(connections.useCommonCodec());
    else renew('asked', this.#reoffers.next(performance.now()));
  }

  /**
   * Sends the pictures in COMMON_CODEC on a new connection, because the node would not take another codec on the present one.
   * @param {string} lacked
   */
  #sendCommonCodec(lacked) {
    if (lacked === '') return;
    this.#around.alarm(new CallError('codec_lacked', { message: `Somebody here cannot show ${lacked}. Your pictures are sent in ${COMMON_CODEC} from now on.` }));
    this.#around.renew('asked', 'new-connection');
  }

  /** @param {Pick<import('./freeze-policy.js').Remedy, 'refresh' | 'how'>} remedy */
  remedy({ refresh, how }) {
    if (refresh.length > 0) this.#around.send({ type: 'refresh', mids: refresh });
    this.#around.renew('frozen', how);
  }
}
