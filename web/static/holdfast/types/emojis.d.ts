/** The emojis that a reaction may have. The server takes no others. */
export const EMOJIS: readonly ["👍", "👏", "❤️", "😂", "😮", "🎉"];
