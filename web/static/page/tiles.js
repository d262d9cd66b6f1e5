// The grid: one tile for each person. A tile's elements are made once and stay;
// what they show changes inside their streams, through every move of the call.

import { bestGrid } from './layout.js';

/** @typedef {import('../holdfast/call.js').Call} Call */
/** @typedef {import('../holdfast/protocol.js').RosterEntry} RosterEntry */
/** @typedef {{root: HTMLElement, video: HTMLVideoElement, audio: HTMLAudioElement | null, who: HTMLElement, face: HTMLElement, entry: RosterEntry, shown: boolean}} Tile */

export class Tiles {
  #grid;
  #call;
  #onBlocked;
  /** @type {Map<string, Tile>} */
  #tiles = new Map();

  /**
   * @param {HTMLElement} grid
   * @param {Call} call
   * @param {MediaStream} own
   * @param {() => void} onBlocked the browser wants a click before it plays sound
   */
  constructor(grid, call, own, onBlocked) {
    this.#grid = grid;
    this.#call = call;
    this.own = own;
    this.#onBlocked = onBlocked;
    new ResizeObserver(() => this.layOut()).observe(grid);
  }

  /** Plays what the browser held back; to be called in a click. */
  play() {
    for (const { audio, video } of this.#tiles.values()) {
      audio?.play().catch(() => {});
      video.play().catch(() => {});
    }
  }

  /** @param {RosterEntry[]} roster */
  show(roster) {
    const here = new Set(roster.map(({ peer }) => peer));
    for (const [peer, tile] of this.#tiles) {
      if (here.has(peer)) continue;
      tile.video.srcObject = null;
      if (tile.audio) tile.audio.srcObject = null;
      tile.root.remove();
      this.#tiles.delete(peer);
    }
    for (const entry of roster) {
      const tile = this.#tiles.get(entry.peer) ?? this.#make(entry);
      tile.entry = entry;
      this.#paint(tile);
    }
    this.layOut();
  }

  /** @param {{peer: string, source: string, live: boolean}} slot */
  slot({ peer, source, live }) {
    const tile = this.#tiles.get(peer);
    if (!tile || source !== 'camera') return;
    tile.shown = live;
    this.#paint(tile);
  }

  /** @param {{peer: string, level: number}[]} speakers */
  speakers(speakers) {
    const loud = new Set(speakers.filter(({ level }) => level > 0).map(({ peer }) => peer));
    for (const [peer, { root }] of this.#tiles) root.classList.toggle('speaking', loud.has(peer));
  }

  /** Sizes the tiles to the grid, and tells the call what is shown how large. */
  layOut() {
    const { clientWidth, clientHeight } = this.#grid;
    const style = getComputedStyle(this.#grid);
    const gap = Number.parseFloat(style.columnGap) || 0;
    const width = clientWidth - Number.parseFloat(style.paddingLeft) - Number.parseFloat(style.paddingRight);
    const tile = bestGrid({ count: this.#tiles.size, width, height: clientHeight, gap });
    this.#grid.style.setProperty('--tile-width', `${tile.width}px`);
    this.#grid.style.setProperty('--tile-height', `${tile.height}px`);
    const scale = globalThis.devicePixelRatio || 1;
    this.#call.setView([...this.#tiles.keys()].filter((peer) => peer !== this.#call.peer).map((peer) => ({
      peer,
      source: 'camera',
      width: Math.round(tile.width * scale),
      height: Math.round(tile.height * scale),
    })));
  }

  /**
   * @param {RosterEntry} entry
   * @returns {Tile}
   */
  #make(entry) {
    const { peer } = entry;
    const self = peer === this.#call.peer;
    const root = document.createElement('article');
    root.className = self ? 'tile self' : 'tile';
    root.dataset.peer = peer;
    const video = document.createElement('video');
    [video.autoplay, video.playsInline, video.muted] = [true, true, true];
    video.srcObject = self ? this.own : this.#call.stream(peer, 'camera');
    const face = document.createElement('div');
    face.className = 'face';
    const plate = document.createElement('div');
    plate.className = 'plate';
    plate.innerHTML = '<svg class="icon"><use href="#icon-mic-off"/></svg><span class="who"></span>';
    root.append(video, face, plate);
    const audio = self ? null : this.#sound(root, peer);
    this.#grid.append(root);
    const who = /** @type {HTMLElement} */ (plate.querySelector('.who'));
    const shown = self || this.#call.slots.some((slot) => slot.peer === peer && slot.source === 'camera');
    const tile = { root, video, audio, who, face, entry, shown };
    this.#tiles.set(peer, tile);
    return tile;
  }

  /**
   * @param {HTMLElement} root
   * @param {string} peer
   */
  #sound(root, peer) {
    const audio = document.createElement('audio');
    audio.autoplay = true;
    const stream = this.#call.stream(peer, 'microphone');
    audio.srcObject = stream;
    audio.play().catch((error) => {
      if (error.name === 'NotAllowedError') this.#onBlocked();
    });
    root.append(audio);
    return audio;
  }

  /** @param {Tile} tile */
  #paint({ root, who, face, entry, shown }) {
    const self = entry.peer === this.#call.peer;
    const name = entry.name || entry.identity;
    const audioMuted = self ? this.#call.isMuted('microphone') : entry.audioMuted;
    const videoMuted = self ? this.#call.isMuted('camera') : entry.videoMuted;
    who.textContent = self ? `${name} (you)` : name;
    face.textContent = initials(name);
    face.style.setProperty('--face', colour(entry.identity));
    root.classList.toggle('silent', audioMuted);
    root.classList.toggle('dark', videoMuted || !shown);
    root.setAttribute('aria-label', `${name}${audioMuted ? ', muted' : ''}${videoMuted ? ', camera off' : ''}`);
  }
}

/** @param {string} name */
function initials(name) {
  const words = name.trim().split(/\s+/).filter(Boolean);
  const letters = words.length > 1 ? [words[0], words[words.length - 1]] : words;
  return letters.map((word) => [...word][0].toUpperCase()).join('');
}

/**
 * The same colour for the same person, dark enough for white letters.
 * @param {string} text
 */
function colour(text) {
  let hash = 0;
  for (const character of text) hash = (hash * 31 + (character.codePointAt(0) ?? 0)) % 360;
  return `hsl(${hash} 38% 38%)`;
}
