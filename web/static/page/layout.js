// Where tiles stand and how large they are. Pure.

/** @typedef {{x: number, y: number, width: number, height: number}} Box whole pixels */
/** @typedef {{width: number, height: number, gap: number}} Area */

/** On an upright screen a square shows more of a face. */
const wide = [16 / 9, 4 / 3];
const upright = [...wide, 1];

export const MOST_TILES = 25;
/** Two of them stand side by side on a narrow screen. */
const LEAST_WIDTH = 150;
/** In a call of two, how much of the other's picture is shown at least: across, as 4:5 shows of 16:9, and upwards. */
const LEAST_ACROSS = 0.45;
const LEAST_UPWARDS = 3 / 4;

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
 * @param {Area & {large: boolean, ratio?: number}} area
 * @returns {number}
 */
export function capacity({ width, height, gap, large, ratio = 0 }) {
  if (large) {
    const { strip } = divide({ width, height, gap, ratio });
    return 1 + fitting({ ...strip, gap }, Math.min(LEAST_WIDTH, isUpright(width, height) ? (strip.width - gap) / 2 : strip.width));
  }
  return fitting({ width, height, gap }, Math.min(LEAST_WIDTH, (width - gap) / 2));
}

/**
 * @param {Area} area
 * @param {number} least width of a tile
 */
function fitting(area, least) {
  for (let count = MOST_TILES; count > 1; count--) {
    if (bestGrid({ count, ...area }).width >= least) return count;
  }
  return 1;
}

/**
 * Places the tiles. With `large` the first tile has most of the area, and the others fill the strip beside or below it. `ratio` is that of the large tile's
 * picture, which is shown whole and without bars; 0 where it has none.
 * @param {Area & {count: number, large: boolean, ratio?: number}} area
 * @returns {Box[]}
 */
export function arrange({ count, large, width, height, gap, ratio = 0 }) {
  if (count <= 0 || width <= 0 || height <= 0) return [];
  if (!large) return grid({ count, width, height, gap });
  if (count === 1) return [fit({ x: 0, y: 0, width, height }, ratio)];
  const { large: first, strip } = divide({ width, height, gap, ratio });
  let least = count - 1;
  // A single one in the strip shall not be as large as the large one.
  for (; least < MOST_TILES; least++) {
    const tile = bestGrid({ ...strip, gap, count: least });
    if (tile.width * tile.height < first.width * first.height) break;
  }
  return [first, ...grid({ ...strip, gap, count: count - 1, least }).map((box) => ({ ...box, x: box.x + strip.x, y: box.y + strip.y }))];
}

/**
 * Places the two people of a call: the other one as large as the area allows, and oneself as a small picture over its lower corner.
 * @param {Area & {ratio: number, rightToLeft: boolean}} area `ratio`: of the other's picture; 0 where it has none
 * @returns {[Box, Box]} the other, and oneself
 */
export function duet({ width, height, gap, ratio, rightToLeft }) {
  const shown = ratio > 0 ? Math.min(Math.max(width / height, ratio * LEAST_ACROSS), ratio / LEAST_UPWARDS) : 0;
  const upright = isUpright(width, height);
  const own = upright ? 3 / 4 : 16 / 9;
  const wished = Math.min(Math.max(width * (upright ? 0.3 : 0.18), 96), 250);
  const small = Math.round(Math.max(Math.min(wished, height * 0.4 * own), 0));
  const box = { width: small, height: Math.round(small / own) };
  return [
    fit({ x: 0, y: 0, width, height }, shown),
    { x: rightToLeft ? gap : Math.max(width - box.width - gap, 0), y: Math.max(height - box.height - gap, 0), ...box },
  ];
}

/**
 * Divides the area between the large tile and the strip. The large tile has exactly the ratio, and the strip stands where that leaves the large tile larger.
 * @param {Area & {ratio: number}} area
 * @returns {{large: Box, strip: Box}}
 */
function divide({ width, height, gap, ratio }) {
  const upright = isUpright(width, height);
  const column = Math.round(Math.min(Math.max(width * 0.17, 120), 250, width / 2));
  const row = Math.round(Math.min(Math.max(height * (upright ? 0.4 : 0.2), 90), height / 2));
  const beside = { width: Math.max(width - column - gap, 1), height };
  const above = { width, height: Math.max(height - row - gap, 1) };
  if (ratio <= 0) above.height = Math.min(above.height, Math.round(width * 0.7)); // A face needs no more.
  const [a, b] = [beside, above].map((area) => fit({ x: 0, y: 0, ...area }, ratio));
  if (ratio > 0 ? a.width * a.height >= b.width * b.height : !upright) {
    return { large: { ...a, x: 0 }, strip: { x: a.width + gap, y: 0, width: Math.max(width - a.width - gap, 1), height } };
  }
  return { large: { ...b, y: 0 }, strip: { x: 0, y: b.height + gap, width, height: Math.max(height - b.height - gap, 1) } };
}

/**
 * The largest box of a ratio in the middle of another box; all of that for the ratio 0.
 * @param {Box} box
 * @param {number} ratio
 * @returns {Box}
 */
function fit({ x, y, width, height }, ratio) {
  if (ratio <= 0) return { x, y, width, height };
  const w = Math.min(width, Math.round(height * ratio));
  const h = Math.min(height, Math.round(w / ratio));
  return { x: x + Math.floor((width - w) / 2), y: y + Math.floor((height - h) / 2), width: w, height: h };
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
