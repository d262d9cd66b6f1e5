/** @typedef {{rejectAnswers?: number}} Faults corrupts the next n answers to restarts */
export class AnswerFaults {
    /** @param {Faults} faults */
    constructor({ rejectAnswers }: Faults);
    /**
     * @param {string} sdp
     * @param {import('./protocol.js').How} how
     */
    read(sdp: string, how: import('./protocol.js').How): string;
    #private;
}
/**
 * corrupts the next n answers to restarts
 */
export type Faults = {
    rejectAnswers?: number;
};
