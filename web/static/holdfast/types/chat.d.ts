export class Chat {
    /**
     * @param {(message: import('./protocol.js').Say) => boolean} send
     * @param {(line: Line) => void} changed a line is new, or known to be sent or not
     */
    constructor(send: (message: import('./protocol.js').Say) => boolean, changed: (line: Line) => void);
    get lines(): {
        id: string;
        peer: string;
        name: string;
        text: string;
        at: number;
        own: boolean;
        state: LineState;
    }[];
    /**
     * Adds a line of one's own, and sends it. Its state is `sending` until the server's echo makes it `sent`.
     * @param {{peer: string, name: string, text: string}} line
     * @returns {Line | null} null for a blank one
     */
    say({ peer, name, text }: {
        peer: string;
        name: string;
        text: string;
    }): Line | null;
    /**
     * @param {import('./protocol.js').Said} said
     * @param {boolean} own
     */
    heard({ peer, name, text, at, id }: import('./protocol.js').Said, own: boolean): void;
    /**
     * Counts a line that the server refused as not sent.
     * @param {import('./protocol.js').Say} said
     */
    refused({ id }: import('./protocol.js').Say): void;
    close(): void;
    #private;
}
export type LineState = 'sending' | 'sent' | 'failed';
/**
 * A line of text, never markup.
 */
export type Line = {
    id: string;
    peer: string;
    name: string;
    text: string;
    at: number;
    own: boolean;
    state: LineState;
};
