/**
 * The message says what to do, `retryable` whether trying again may help. `about` is the type of the message that the server refused, such as
 * `rename` or `moderate`; it is empty for other errors, and when the server is older than that.
 */
export class CallError extends Error {
    /**
     * Of a server's `error` or `bye`.
     * @param {{code: string, message: string, retryable?: boolean, retryAfterMs?: number}} message
     * @param {string} [about] the type of the message that was refused
     */
    static of({ code, message, retryable, retryAfterMs }: {
        code: string;
        message: string;
        retryable?: boolean;
        retryAfterMs?: number;
    }, about?: string | undefined): CallError;
    /**
     * @param {string} code
     * @param {{message?: string, retryable?: boolean, retryAfterMs?: number, about?: string, cause?: unknown}} options
     */
    constructor(code: string, options?: {
        message?: string | undefined;
        retryable?: boolean | undefined;
        retryAfterMs?: number | undefined;
        about?: string | undefined;
        cause?: unknown;
    });
    code: string;
    retryable: boolean;
    retryAfterMs: number;
    about: string;
}
