// Who has a tile, which is large, which are on this page, and where each stands.

import { readChoices } from './choices.js';
import { find } from './elements.js';
import { places } from './hands.js';
import { arrange, capacity, duet } from './layout.js';
import { chosenLayout } from './layouts.js';
import { Order } from './order.js';
import { problemOf } from './problem.js';
import { Spotlight } from './spotlight.js';
import { TileMenu } from './tile-menu.js';
import { Tile } from './tile.js';
import { View } from './view.js';
import { say } from './words.js';

/** @typedef {import('../holdfast/call.js').Call} Call */
/** @typedef {import('../holdfast/protocol.js').RosterEntry} RosterEntry */
/** @typedef {import('./quality.js').Quality} Quality */
/** @typedef {{call: Call, encryption: import('./encryption.js').Encryption | null, own: MediaStream, screen: () => import('./share.js').Share | null, videoSlots: number, onBlocked: () => void, onView: () => void}} Options `onView`: a tile's menu changed what the settings hold */

/** @param {string} peer */
const screenKey = (peer) => `${peer}/screen`;

export class Tiles {
  #options;
  #call;
  #menu;
  #view;
  #grid = find('#grid', HTMLElement);
  #pager = find('#pager', HTMLElement);
  #order = new Order();
  #spotlight = new Spotlight();
  #hidesSelf = readChoices().hideSelf;
  #layout = chosenLayout();
  /** @type {Map<string, Tile>} */
  #tiles = new Map();
  /** @type {Map<string, RosterEntry>} */
  #people = new Map();
  /**
   * The key of the pinned tile; empty when none was chosen, null when no tile shall be large.
   * @type {string | null}
   */
  #pinned = '';
  #speaker = '';
  #page = 0;
  #inSight = 1;
  /**
   * The key of the tile whose picture's ratio the layout follows.
   * @type {string}
   */
  #shaped = '';
  /**
   * The peers whose pictures arrive and are not decoded, with their codec.
   * @type {ReadonlyMap<string, string>}
   */
  #undecoded = new Map();
  #resize = new ResizeObserver(() => this.layOut());

  /** @param {Options} options */
  constructor(options) {
    this.#options = options;
    this.#call = options.call;
    this.#view = new View(options.call);
    this.#resize.observe(this.#grid);
    const stop = new AbortController();
    this.#menu = new TileMenu(stop.signal);
    document.addEventListener('fullscreenchange', () => this.layOut(), { signal: stop.signal });
    for (const [id, step] of /** @type {[string, number][]} */ ([['#previous', -1], ['#next', 1]])) {
      find(id, HTMLButtonElement).addEventListener('click', () => this.#turn(step), { signal: stop.signal });
    }
    this.#call.addEventListener('left', () => {
      stop.abort();
      this.#resize.disconnect();
      for (const tile of this.#tiles.values()) tile.remove();
      this.#tiles.clear();
      this.#pager.hidden = true;
    }, { once: true });
  }

  /** To be called in a click. */
  play() {
    for (const tile of this.#tiles.values()) tile.play();
  }

  /**
   * @param {string} peer
   * @param {string} emoji
   */
  react(peer, emoji) {
    this.#tiles.get(peer)?.react(emoji);
  }

  /** @param {string} id of a loudspeaker; empty for the system's */
  setSpeaker(id) {
    this.#speaker = id;
    for (const tile of this.#tiles.values()) tile.speaker(id);
  }

  /** @param {string} peer */
  sees(peer) {
    return this.#view.sees(peer);
  }

  refresh() {
    this.#people = new Map(this.#call.roster.map((entry) => [entry.peer, entry]));
    const screens = this.#screens().map(screenKey);
    const keys = [...screens, ...this.#people.keys()];
    for (const [key, tile] of this.#tiles) {
      if (keys.includes(key)) continue;
      tile.remove();
      this.#tiles.delete(key);
      if (this.#pinned === key) this.#pinned = '';
    }
    // The wish to see none of the screens ends with them.
    if (this.#pinned === null && screens.length === 0) this.#pinned = '';
    for (const key of keys) if (!this.#tiles.has(key)) this.#make(key);
    this.#order.sync([...this.#people.keys()]);
    this.paint();
    this.layOut();
  }

  /** As the person chose in the settings. */
  choose() {
    this.#hidesSelf = readChoices().hideSelf;
    // What is pinned hides the layout.
    if (this.#layout !== chosenLayout() || (this.#pinned && this.#hides(this.#pinned))) this.#pinned = '';
    this.#layout = chosenLayout();
    this.paint();
    this.layOut();
  }

  /** @param {{peer: string, level: number}[]} speakers */
  speakers(speakers) {
    const loud = speakers.filter(({ level }) => level > 0).map(({ peer }) => peer);
    for (const [key, tile] of this.#tiles) tile.speak(loud.includes(key));
    if (this.#spotlight.heard(loud.filter((peer) => peer !== this.#call.peer && this.#people.has(peer)), performance.now()) && this.#shines()) this.layOut();
    const others = loud.filter((peer) => this.#people.has(peer) && peer !== this.#large());
    const pinned = this.#large();
    const row = new Set(this.#beside(pinned).slice(0, this.#inSight));
    if (others.length > 0 && (this.#page === 0 || others.every((peer) => row.has(peer)))) {
      const inSight = this.#inSight + this.#order.keys.slice(0, this.#inSight).filter((key) => key === pinned || this.#hides(key)).length;
      if (this.#order.heard(others, inSight, this.#call.peer)) this.layOut();
    }
  }

  /** @param {string} key oneself, by choice, but not one's screen */
  #hides(key) {
    return this.#hidesSelf && key === this.#call.peer;
  }

  /**
   * People who stand in a row.
   * @param {string} large stands in none
   */
  #beside(large) {
    return this.#order.keys.filter((key) => key !== large && !this.#hides(key));
  }

  /**
   * @param {Quality} own
   * @param {Map<string, Quality | null>} others
   * @param {ReadonlyMap<string, string>} undecoded peers whose pictures come and are not decoded, with their codec
   */
  judge(own, others, undecoded) {
    this.#undecoded = undecoded;
    this.paint();
    for (const [key, tile] of this.#tiles) {
      tile.judge(key === this.#call.peer ? own : others.get(key) ?? null);
    }
  }

  paint() {
    const pictures = this.#call.slots.filter(({ peer, kind }) => peer !== '' && kind === 'video');
    const hands = places(this.#call.roster);
    const paused = new Map(pictures.map(({ peer, source, paused }) => [source === 'screen' ? screenKey(peer) : peer, Boolean(paused)]));
    for (const [key, tile] of this.#tiles) {
      const peer = key.split('/')[0];
      const entry = this.#people.get(peer);
      if (!entry) continue;
      const self = peer === this.#call.peer;
      const name = entry.name || entry.identity;
      if (key !== peer) {
        tile.paint({ name, title: self ? say(this.#call.isMuted('screen-audio') ? 'tile.own.screen' : 'tile.own.screen.sound') : say('tile.screen', { name }), identity: entry.identity, silent: false, dark: !self && !paused.has(key), paused: paused.get(key) ?? false, problem: problemOf(this.#call, this.#options.encryption, this.#undecoded, entry, ['screen', 'screen-audio']), pinned: this.#large() === key && !this.#shines() });
        continue;
      }
      tile.paint({
        name,
        title: self ? say('tile.you', { name }) : name,
        identity: entry.identity,
        silent: self ? this.#call.isMuted('microphone') : entry.audioMuted,
        dark: self ? this.#call.isMuted('camera') : entry.videoMuted || !paused.has(key),
        paused: !self && !entry.videoMuted && (paused.get(key) ?? false),
        problem: problemOf(this.#call, this.#options.encryption, this.#undecoded, entry, ['camera', 'microphone']),
        pinned: this.#large() === key && !this.#shines(),
        hand: hands.get(peer),
      });
    }
  }

  /** Places the tiles, and tells the call what is in sight how large. */
  layOut() {
    const style = getComputedStyle(this.#grid);
    const gap = Number.parseFloat(style.getPropertyValue('--gap')) || 10;
    const room = find('.room', HTMLElement);
    room.classList.remove('paged');
    const area = { width: this.#grid.clientWidth, height: this.#grid.clientHeight, gap };
    if (area.width === 0 || this.#tiles.size === 0) return;
    const other = this.#other();
    if (other !== '') {
      this.#shaped = other;
      const inSight = [other, this.#call.peer].filter((key) => !this.#hides(key));
      const boxes = duet({ ...area, ratio: this.#ratioOf(other), rightToLeft: style.direction === 'rtl' });
      this.#page = 0;
      this.#inSight = 2;
      this.#grid.style.setProperty('--inset', `${boxes[1].width}px`);
      this.#place(inSight, boxes, '');
      this.#showPager(1);
      this.#show(inSight, boxes, inSight);
      return;
    }
    const large = this.#large();
    this.#shaped = large;
    const ratio = this.#ratioOf(large);
    const row = [...this.#tiles.keys()].filter((key) => key.includes('/') && key !== large);
    row.push(...this.#beside(large));
    let each = this.#fits({ ...area, ratio }, large);
    const paged = row.length > each;
    room.classList.toggle('paged', paged);
    if (paged) {
      area.height = this.#grid.clientHeight; // The pager has its place.
      each = this.#fits({ ...area, ratio }, large);
    }
    const pages = Math.max(Math.ceil(row.length / each), 1);
    this.#page = Math.min(this.#page, pages - 1);
    this.#inSight = each;
    const here = row.slice(this.#page * each, (this.#page + 1) * each);
    const inSight = large ? [large, ...here] : here;
    const boxes = arrange({ ...area, count: inSight.length, large: large !== '', ratio });
    this.#place(inSight, boxes, large);
    this.#showPager(pages);
    this.#show(inSight, boxes, row);
  }

  /**
   * @param {string[]} inSight
   * @param {import('./layout.js').Box[]} boxes
   * @param {string} large
   */
  #place(inSight, boxes, large) {
    const two = large === '' && this.#other() !== '';
    this.#grid.classList.toggle('duet', two);
    for (const [key, tile] of this.#tiles) {
      const at = inSight.indexOf(key);
      tile.place(at < 0 ? null : boxes[at] ?? null);
      tile.root.classList.toggle('large', key === large);
      tile.root.classList.toggle('inset', two && key === this.#call.peer);
    }
  }

  /** @param {string} key */
  #ratioOf(key) {
    return this.#tiles.get(key)?.ratio ?? 0;
  }

  /**
   * Beside the large one, if there is one.
   * @param {import('./layout.js').Area & {ratio: number}} area
   * @param {string} large
   */
  #fits(area, large) {
    const fits = Math.max(capacity({ ...area, large: large !== '' }) - (large ? 1 : 0), 1);
    return large ? fits : Math.min(fits, this.#pictures());
  }

  /** The number of people's tiles that fit the video slots. This client's own tile and those of people without a camera need no slot. */
  #pictures() {
    const free = [...this.#people.values()].filter(({ peer, videoMuted }) => peer === this.#call.peer || videoMuted).length;
    return Math.max(this.#options.videoSlots - this.#screens().length, 1) + free;
  }

  /**
   * @param {string[]} inSight
   * @param {import('./layout.js').Box[]} boxes
   * @param {string[]} row
   */
  #show(inSight, boxes, row) {
    const wants = [...inSight, ...row.filter((key) => !inSight.includes(key))].flatMap((key, i) => {
      const peer = key.split('/')[0];
      const tile = this.#tiles.get(key);
      if (!tile || peer === this.#call.peer) return [];
      const whole = document.fullscreenElement === tile.root ? { width: innerWidth, height: innerHeight } : null;
      const { width = 0, height = 0 } = whole ?? (i < inSight.length ? boxes[i] ?? {} : {});
      return [{ peer, source: /** @type {import('../holdfast/protocol.js').Source} */ (key === peer ? 'camera' : 'screen'), root: tile.root, width, height }];
    });
    this.#view.show(wants);
  }

  /** @param {number} pages */
  #showPager(pages) {
    this.#pager.hidden = pages < 2;
    find('#page', HTMLElement).textContent = `${this.#page + 1} / ${pages}`;
    find('#previous', HTMLButtonElement).disabled = this.#page === 0;
    find('#next', HTMLButtonElement).disabled = this.#page >= pages - 1;
  }

  /** @param {number} step */
  #turn(step) {
    this.#page = Math.max(this.#page + step, 0);
    this.layOut();
  }

  /** In the order they came. */
  #screens() {
    return [...this.#people.values()].filter(({ peer, screenShared }) => (peer === this.#call.peer ? this.#options.screen()?.stream != null : screenShared)).map(({ peer }) => peer);
  }

  /** Returns the other one of a call of two, where nothing else is chosen; else an empty string. */
  #other() {
    if (this.#layout === 'even' || this.#pinned || this.#people.size !== 2 || this.#screens().length > 0 || document.fullscreenElement) return '';
    return this.#order.keys.find((key) => key !== this.#call.peer) ?? '';
  }

  /** The speaker layout decides who is large. */
  #shines() {
    return this.#layout === 'speaker' && this.#pinned === '' && this.#other() === '' && !this.#screens().some((peer) => peer !== this.#call.peer);
  }

  /** What has the whole screen, else what is pinned, else somebody's screen, else in the speaker layout who speaks, else none. */
  #large() {
    const full = [...this.#tiles].find(([, { root }]) => root === document.fullscreenElement);
    if (full) return full[0]; // What is out of sight would end it.
    if (this.#pinned === null) return '';
    if (this.#pinned !== '' && this.#tiles.has(this.#pinned)) return this.#pinned;
    const screen = this.#screens().find((peer) => peer !== this.#call.peer);
    if (screen) return screenKey(screen);
    return this.#shines() ? this.#spotlight.of(this.#order.keys.filter((key) => key !== this.#call.peer)) : '';
  }

  /** @param {string} key */
  #pin(key) {
    if (document.fullscreenElement) return;
    const large = this.#large();
    if (large === key && !this.#shines()) this.#pinned = this.#screens().some((peer) => peer !== this.#call.peer) ? null : '';
    else this.#pinned = key;
    this.#page = 0;
    this.paint();
    this.layOut();
  }

  /**
   * @param {string} key
   * @param {HTMLElement} button
   */
  #offer(key, button) {
    const tile = this.#tiles.get(key);
    const { onView } = this.#options;
    if (tile) this.#menu.toggle(button, tile, { name: button.ariaLabel ?? '', pinned: this.#large() === key && !this.#shines(), self: key === this.#call.peer, share: key === screenKey(this.#call.peer) ? this.#options.screen() : null, onPin: () => this.#pin(key), onView });
  }

  /** @param {string} key */
  #make(key) {
    const peer = key.split('/')[0];
    const [self, screen] = [peer === this.#call.peer, key !== peer];
    const picture = screen
      ? (self ? this.#options.screen()?.stream ?? new MediaStream() : this.#call.stream(peer, 'screen'))
      : (self ? this.#options.own : this.#call.stream(peer, 'camera'));
    const tile = new Tile({
      key, peer, self, screen, picture,
      sound: self ? null : this.#call.stream(peer, screen ? 'screen-audio' : 'microphone'),
      onPin: () => this.#pin(key),
      onMenu: (button) => this.#offer(key, button),
      onBlocked: this.#options.onBlocked,
      onShape: () => {
        if (key === this.#shaped) this.layOut();
      },
    });
    tile.speaker(this.#speaker);
    this.#tiles.set(key, tile);
    this.#grid.append(tile.root);
  }
}
