/**
 * Codes of the browser; docs/API.md has the server's.
 * @type {Record<string, string>}
 */
const sentences = {
  unreachable: 'The server cannot be reached. Check the network connection and try again.',
  media_unreachable: 'The media server cannot be reached over UDP. A firewall or VPN may be blocking it. Trying again.',
  no_webrtc: 'This browser cannot make video calls. Use a current version of Chrome, Edge, Firefox or Safari.',
  bad_url: 'The address of the server is not valid. It is one of http, https, ws or wss, such as https://video.example.org.',
  bad_token: 'The access token is missing. Ask the application for one.',
  bad_argument: 'The application passed something that the library cannot use.',
  bad_state: 'This call has already been joined. Make a new Call to join again.',
  not_published: 'This connection may not send that: its token does not allow it. Ask the application for another one.',
  not_renamed: 'This connection may not change its name: its token does not allow it. Ask the application for another one.',
  not_said: 'This connection may not write to the chat: its token does not allow it. Ask the application for another one.',
  not_moderator: 'This connection does not run the room. Ask who does.',
  not_watched: 'This connection may not see who is online: its token does not allow it. Ask the application for another one.',
  not_messaged: 'This connection may not send messages: its token does not allow it. Ask the application for another one.',
  not_sent: 'This connection may not send data: its token does not allow it. Ask the application for another one.',
  data_too_long: 'A message over data channels has at most 15 KiB. Send less.',
  text_too_long: 'A chat line has at most 2000 characters. Write less, or two lines.',
  message_too_long: 'A message has at most 8 KiB. Send less.',
  too_many_waiting: 'Too many messages wait for an answer. Wait for some of them.',
  too_many_watched: 'At most 500 people can be watched at once.',
  no_token: 'No access token could be fetched. Try again.',
};

/**
 * The message says what to do, `retryable` whether trying again may help. `about` is the type of the message that the server refused, such as
 * `rename` or `moderate`; it is empty for other errors, and when the server is older than that.
 */
export class CallError extends Error {
  /**
   * @param {string} code
   * @param {{message?: string, retryable?: boolean, retryAfterMs?: number, about?: string, cause?: unknown}} options
   */
  constructor(code, options = {}) {
    const { message, retryable = false, retryAfterMs = 0, about = '', cause } = options;
    super(message || sentences[code] || 'Something went wrong. Try again.', { cause });
    this.name = 'CallError';
    this.code = code;
    this.retryable = retryable;
    this.retryAfterMs = retryAfterMs;
    this.about = about;
  }

  /**
   * Of a server's `error` or `bye`.
   * @param {{code: string, message: string, retryable?: boolean, retryAfterMs?: number}} message
   * @param {string} [about] the type of the message that was refused
   */
  static of({ code, message, retryable, retryAfterMs }, about) {
    return new CallError(code, { message, retryable, retryAfterMs, about });
  }
}
