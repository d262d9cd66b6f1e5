// How large tiles can be. Pure.

/** The shapes a tile may take. Cameras are wide; on an upright screen a square shows more of a face. */
const wide = [16 / 9, 4 / 3];
const upright = [...wide, 1];

/**
 * The number of columns and the shape that show the most picture.
 * @param {{count: number, width: number, height: number, gap: number}} room
 * @returns {{width: number, height: number}} whole pixels
 */
export function bestGrid({ count, width, height, gap }) {
  let best = { width: 0, height: 0 };
  for (let columns = 1; columns <= Math.max(count, 1); columns++) {
    const rows = Math.ceil(Math.max(count, 1) / columns);
    const cellWidth = (width - gap * (columns - 1)) / columns;
    const cellHeight = (height - gap * (rows - 1)) / rows;
    for (const ratio of height > width ? upright : wide) {
      const tileWidth = Math.floor(Math.min(cellWidth, cellHeight * ratio));
      const tileHeight = Math.floor(tileWidth / ratio);
      // A squarer tile must show clearly more, or wide pictures are cropped for nothing.
      if (tileWidth * tileHeight > best.width * best.height * 1.05) best = { width: tileWidth, height: tileHeight };
    }
  }
  return { width: Math.max(best.width, 0), height: Math.max(best.height, 0) };
}
