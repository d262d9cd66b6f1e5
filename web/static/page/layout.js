// Where tiles stand and how large they are. Pure.

/** @typedef {{x: number, y: number, width: number, height: number}} Box whole pixels */
/** @typedef {{width: number, height: number, gap: number}} Area */

/** On an upright screen a square shows more of a face. */
const wide = [16 / 9, 4 / 3];
const upright = [...wide, 1];

export const MOST_TILES = 25;
/** Two of them stand side by side on a narrow screen. */
const LEAST_WIDTH = 150;

/**
 * Returns the number of columns and rows, and the tile's size, with which `count` tiles show the most picture.
 * @param {Area & {count: number}} area
 * @returns {{columns: number, rows: number, width: number, height: number}}
 */
export function bestGrid({ count, width, height, gap }) {
  const tiles = Math.max(count, 1);
  let best = { columns: 1, rows: tiles, width: 0, height: 0 };
  for (let columns = 1; columns <= tiles; columns++) {
    const rows = Math.ceil(tiles / columns);
    const cellWidth = (width - gap * (columns - 1)) / columns;
    const cellHeight = (height - gap * (rows - 1)) / rows;
    for (const ratio of height > width ? upright : wide) {
      const tileWidth = Math.floor(Math.min(cellWidth, cellHeight * ratio));
      const tileHeight = Math.floor(tileWidth / ratio);
      // A later choice must show clearly more, because a squarer tile crops the picture.
      if (tileWidth * tileHeight > best.width * best.height * 1.05) {
        best = { columns, rows, width: Math.max(tileWidth, 0), height: Math.max(tileHeight, 0) };
      }
    }
  }
  return best;
}

/**
 * Returns how many tiles fit, the large one included.
 * @param {Area & {large: boolean}} area
 * @returns {number}
 */
export function capacity({ width, height, gap, large }) {
  if (large && isUpright(width, height)) {
    return 1 + capacity({ width, height: height - largeHeight(width, height) - gap, gap, large: false });
  }
  if (large) return 1 + column({ width, height, gap }).capacity;
  const least = Math.min(LEAST_WIDTH, (width - gap) / 2);
  for (let count = MOST_TILES; count > 1; count--) {
    if (bestGrid({ count, width, height, gap }).width >= least) return count;
  }
  return 1;
}

/**
 * Places the tiles. With `large` the first tile has most of the area, and the others stand beside it, or below it on an upright screen.
 * @param {Area & {count: number, large: boolean}} area
 * @returns {Box[]}
 */
export function arrange({ count, large, width, height, gap }) {
  if (count <= 0 || width <= 0 || height <= 0) return [];
  if (!large) return grid({ count, width, height, gap });
  if (count === 1) return [{ x: 0, y: 0, width, height }];
  if (isUpright(width, height)) {
    const top = largeHeight(width, height) + gap;
    // A single one below shall not be as large as the large one.
    const below = grid({ count: count - 1, least: 4, width, height: height - top, gap });
    return [{ x: 0, y: 0, width, height: top - gap }, ...below.map((box) => ({ ...box, y: box.y + top }))];
  }
  const side = column({ width, height, gap });
  const others = Math.min(count - 1, side.capacity);
  const first = Math.max(Math.floor((height - others * side.height - gap * (others - 1)) / 2), 0);
  return [
    { x: 0, y: 0, width: width - side.width - gap, height },
    ...Array.from({ length: others }, (_, i) => ({ x: width - side.width, y: first + i * (side.height + gap), width: side.width, height: side.height })),
  ];
}

/**
 * Rows of equal tiles in the middle, as small as those of `least`.
 * @param {Area & {count: number, least?: number}} area
 * @returns {Box[]}
 */
function grid({ count, least = 1, width, height, gap }) {
  const best = bestGrid({ count: Math.max(count, least), width, height, gap });
  const rows = Math.ceil(count / best.columns);
  const top = Math.floor((height - rows * best.height - gap * (rows - 1)) / 2);
  return Array.from({ length: count }, (_, i) => {
    const row = Math.floor(i / best.columns);
    const inRow = Math.min(best.columns, count - row * best.columns);
    const left = Math.floor((width - inRow * best.width - gap * (inRow - 1)) / 2);
    return {
      x: left + (i % best.columns) * (best.width + gap),
      y: top + row * (best.height + gap),
      width: best.width,
      height: best.height,
    };
  });
}

/**
 * @param {number} width
 * @param {number} height
 */
function isUpright(width, height) {
  return height > width * 0.9;
}

/**
 * A wide picture needs no more on an upright screen.
 * @param {number} width
 * @param {number} height
 */
function largeHeight(width, height) {
  return Math.round(Math.min(width * 0.7, height * 0.6));
}

/**
 * @param {Area} area
 * @returns {{width: number, height: number, capacity: number}}
 */
function column({ width, height, gap }) {
  const tileWidth = Math.round(Math.min(Math.max(width * 0.17, 120), 250, width / 2));
  const tileHeight = Math.floor(tileWidth * (9 / 16));
  return { width: tileWidth, height: tileHeight, capacity: Math.max(Math.floor((height + gap) / (tileHeight + gap)), 1) };
}
