// What can be done with one tile: its own place, the whole screen, or a picture over other windows.

import { keepChoices } from './choices.js';
import { find } from './elements.js';
import { Menu } from './menu.js';
import { say } from './words.js';

/** @typedef {import('./tile.js').Tile} Tile */
/** @typedef {{name: string, pinned: boolean, self: boolean, share: import('./share.js').Share | null, onPin: () => void, onView: () => void}} About `share`: of one's own screen; `onView`: how people are shown was changed */

export class TileMenu {
  #menu;

  /** @param {AbortSignal} signal ends it, and what it began */
  constructor(signal) {
    this.#menu = new Menu(find('#stage', HTMLElement), '', signal);
    signal.addEventListener('abort', () => {
      if (document.fullscreenElement) document.exitFullscreen().catch(() => {});
      if (document.pictureInPictureElement) document.exitPictureInPicture().catch(() => {});
    });
  }

  /**
   * @param {HTMLElement} button
   * @param {Tile} tile
   * @param {About} about
   */
  toggle(button, tile, { name, pinned, self, share, onPin, onView }) {
    // In full screen nothing outside of the tile is seen.
    if (document.fullscreenElement === tile.root) {
      document.exitFullscreen().catch(() => {});
      return;
    }
    const floats = document.pictureInPictureElement === tile.video;
    this.#menu.toggle(button, name, [
      { label: say(pinned ? 'unpin' : 'pin'), onSelect: onPin },
      ...(document.fullscreenEnabled ? [{ label: say('tile.full'), onSelect: () => tile.root.requestFullscreen().catch(() => {}) }] : []),
      ...(document.pictureInPictureEnabled && tile.video.videoWidth > 0 ? [{ label: say(floats ? 'tile.float.end' : 'tile.float'), onSelect: () => float(tile.video, floats) }] : []),
      ...(share?.sounds ? [{ label: say(share.silent ? 'screen.sound.on' : 'screen.sound.off'), onSelect: () => share.toggleSound() }] : []),
      ...(self ? [{ label: say('tile.hide'), onSelect: () => { keepChoices({ hideSelf: true }); onView(); } }] : []),
    ]);
  }
}

/**
 * @param {HTMLVideoElement} video
 * @param {boolean} floats
 */
function float(video, floats) {
  const done = floats ? document.exitPictureInPicture() : video.requestPictureInPicture();
  done.catch(() => {}); // The browser may not want to.
}
