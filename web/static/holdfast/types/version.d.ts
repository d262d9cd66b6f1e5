/** The library's version: that of the Holdfast release that it came with. */
export const version: "0.1.0";
