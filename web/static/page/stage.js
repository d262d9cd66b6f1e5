// One call, from the first tile to the last word.

import { showAllowed } from './allowed.js';
import { watchOutages } from './banner.js';
import { keepChoices, readChoices } from './choices.js';
import { ChatPanel } from './chat-panel.js';
import { DevicePicker } from './device-picker.js';
import { DeviceProblem } from './devices.js';
import { showDetails } from './details.js';
import { DoorPanel } from './door-panel.js';
import { find, setIcon } from './elements.js';
import { foldControls } from './fold.js';
import { Gestures, some } from './gestures.js';
import { watchHealth } from './health.js';
import { copyInvitation } from './invitation.js';
import { offerInvitation } from './invite-panel.js';
import { offerToKill } from './kill.js';
import { Keyless } from './keyless.js';
import { offerLayouts } from './layouts.js';
import { askToLeave, stopAsking } from './leave-question.js';
import { showLeft } from './left.js';
import { hintWhileMuted } from './muted-hint.js';
import { clearNotices, dismissNotices, notice, whisper } from './notices.js';
import { Panels } from './panels.js';
import { People } from './people.js';
import { moved, mutedBy, ofCall, ofPlace, unmuteAsked, whileTrying, without } from './sentences.js';
import { RingPanel } from './ring-panel.js';
import { Share } from './share.js';
import { offerSettings } from './settings.js';
import { listenForKeys } from './shortcuts.js';
import { followSpeaker } from './speaker.js';
import { Status } from './status.js';
import { Tiles } from './tiles.js';
import { keepAwake } from './wake-lock.js';
import { identityInDev, inDevelopment, invitationTemplate } from './tokens.js';
import { lasted, name, say } from './words.js';

/** @typedef {import('../holdfast/call.js').Call} Call */
/** @typedef {import('./devices.js').Devices} Devices */
/** @typedef {import('./quality.js').Quality} Quality */

/** As long as somebody who was asked to unmute may think about it. */
const ASKED_MS = 30000;

export class Stage {
  #root = find('#stage', HTMLElement);
  #devices;
  #ringing;
  #panels;
  #picker;
  /** @type {Call | null} */
  #call = null;
  /** @type {Tiles | null} */
  #tiles = null;
  /** @type {Share | null} */
  #share = null;
  /** @type {ChatPanel | null} */
  #chat = null;
  /** @type {People | null} */
  #people = null;
  /** @type {DoorPanel | null} */
  #door = null;
  /** @type {Gestures | null} */
  #gestures = null;
  /** @type {Map<string, Quality | null>} */
  #qualities = new Map();
  /** @type {import('./encryption.js').Encryption | null} */
  #encryption = null;
  #key = '';
  /** @type {Status | null} */
  #status = null;
  /**
   * The call that this person ends for everybody.
   * @type {Call | null}
   */
  #ending = null;
  /** Whether names of nodes mean something to this person. */
  #dev = false;
  /** @type {Map<string, string>} */
  #names = new Map();
  /** Whether some pictures are held back now. */
  #slow = false;
  /**
   * For each device, the function that withdraws the notice about it.
   * @type {Map<'microphone' | 'camera', () => void>}
   */
  #troubles = new Map();
  /** Withdraws the notice that shows the place in line. */
  #withdrawPlace = () => {};
  #keys = new AbortController();
  #refreshSettings;

  /**
   * @param {Devices} devices
   * @param {import('./ringing.js').Ringing} ringing
   */
  constructor(devices, ringing) {
    this.#devices = devices;
    this.#ringing = ringing;
    this.#panels = new Panels((open) => {
      this.#chat?.setOpen(open === 'chat');
      this.#door?.setOpen(open === 'people');
      if (open === 'settings') this.#picker.refresh();
    });
    this.#picker = new DevicePicker(find('#settings-devices', HTMLElement), devices, ['microphone', 'camera', 'speaker'], (id) => this.#tiles?.setSpeaker(id));
    this.#refreshSettings = offerSettings(find('#settings-more', HTMLElement), devices, () => this.#tiles?.choose());
    find('#leave', HTMLButtonElement).addEventListener('click', () => (this.#mayEnd() ? this.#askToLeave() : this.#call?.leave()));
    // With the keyboard alone the way past 25 tiles is long.
    const keys = find('#keys-on', HTMLInputElement);
    keys.checked = !readChoices().keysOff;
    keys.addEventListener('change', () => keepChoices({ keysOff: !keys.checked }));
    find('#skip', HTMLButtonElement).addEventListener('click', () => find('.controls button', HTMLButtonElement).focus());
    find('#copy', HTMLButtonElement).addEventListener('click', () => copyInvitation(this.#call?.room ?? '', this.#key));
    find('#alone-copy', HTMLButtonElement).addEventListener('click', () => copyInvitation(this.#call?.room ?? '', this.#key));
    const share = find('#share', HTMLButtonElement);
    share.hidden = !Share.possible;
    share.addEventListener('click', () => this.#share?.toggle());
    for (const button of document.querySelectorAll('[data-toggle]')) {
      button.addEventListener('click', () => this.#toggle(/** @type {'microphone' | 'camera'} */ (button.getAttribute('data-toggle'))));
    }
    devices.addEventListener('track', (event) => this.#send(/** @type {CustomEvent} */ (event).detail.source));
    devices.addEventListener('change', () => this.#paint());
  }

  /**
   * @param {Call} call
   * @param {{videoSlots: number, encryption: import('./encryption.js').Encryption | null, key: string}} options `key`: for invitations
   */
  take(call, { videoSlots, encryption, key }) {
    [this.#call, this.#encryption, this.#key] = [call, encryption, key];
    clearNotices(); // Of the call before.
    encryption?.addEventListener('change', () => this.#tiles?.paint());
    /** @type {(type: string, handler: (detail: any) => void) => void} */
    const on = (type, handler) => call.addEventListener(type, (event) => handler(/** @type {CustomEvent} */ (event).detail));
    on('joined', ({ room }) => this.#show(room, videoSlots));
    on('waiting', (place) => this.#tiles && this.#sayPlace(place)); // Before the first time the lobby says it.
    on('roster', () => this.#roster());
    on('audience', () => this.#paint());
    on('slot', (change) => this.#slot(change));
    on('lacks', () => this.#tiles?.paint());
    on('speakers', ({ speakers }) => this.#tiles?.speakers(speakers));
    // Before the first time the lobby says it. Once media came it is no firewall that takes it away: the banner says what is known.
    on('error', (error) => !this.#tiles || error.code === 'media_unreachable' && call.state !== 'connecting' || notice(error.code === 'no_capacity' ? whileTrying(error) : ofCall(error)));
    on('chat', ({ line }) => {
      if (!line.own && this.#panels.open !== 'chat') whisper(say('chat.heard', { name: line.name, text: line.text }));
    });
    on('migration', (migration) => migration.phase === 'done' && whisper(moved(migration, this.#dev)));
    on('muted-by', ({ source, by }) => this.#mutedBy(source, by));
    on('unmute-asked', ({ source, by }) => this.#askedToUnmute(source, by));
    on('permissions', ({ permissions: { moderate } }) => {
      notice(say(moderate ? 'host.now' : 'host.no.more'));
      this.#paint();
    });
    on('mended', ({ gapMs, lost }) => whisper(`${say('moves.mended.told', { gap: lasted(gapMs) })} ${without(lost)}`));
    on('left', () => this.#end());
  }

  /**
   * @param {string} room
   * @param {number} videoSlots
   */
  #show(room, videoSlots) {
    const call = this.#call;
    if (!call) return;
    document.title = `${room} · Holdfast`;
    this.#withdrawPlace();
    if (this.#tiles) return; // Joined anew: everything is in its place.
    find('#title', HTMLElement).textContent = room;
    find('#encrypted', HTMLElement).hidden = !this.#encryption;
    this.#root.hidden = false;
    this.#share = new Share(call, () => this.#paint());
    this.#chat = new ChatPanel(call);
    this.#people = new People(call);
    this.#door = new DoorPanel(call);
    this.#gestures = new Gestures(call, (peer, emoji) => this.#tiles?.react(peer, emoji));
    const encryption = this.#encryption;
    this.#tiles = new Tiles({ call, encryption, own: this.#devices.stream, screen: () => this.#share, videoSlots, onBlocked: () => this.#askForSound(), onView: () => this.#viewChosen() });
    this.#tiles.setSpeaker(readChoices().speaker);
    const status = this.#status = new Status(call);
    const keyless = new Keyless();
    watchHealth(call, (peer) => this.#tiles?.sees(peer) ?? false, (own, peers, undecoded, unheard) => {
      if (!encryption) keyless.look(undecoded, unheard, (peer) => this.#names.get(peer) || say('somebody'));
      this.#qualities = new Map(peers).set(call.peer, own);
      this.#tiles?.judge(own, peers, undecoded);
      status.judge(own);
      this.#people?.show(this.#qualities);
    });
    watchOutages(call, (silent) => silent && this.#tiles?.speakers([]));
    offerToKill(call);
    this.#offerToInvite(call);
    this.#names = new Map(call.roster.map(({ peer, name }) => [peer, name]));
    this.#listenForKeys();
    this.#paint();
    this.#root.focus(); // The lobby's focus goes with it; Tab leads to the first button.
  }

  /**
   * A ring leads into the room, not to its key: the cluster could read that.
   * @param {Call} call
   */
  async #offerToInvite(call) {
    const [dev, template] = await Promise.all([inDevelopment(), invitationTemplate()]);
    if (call !== this.#call) return;
    this.#dev = dev;
    this.#status?.showNodes(dev);
    const rings = !this.#encryption && call.messages.scope === 'anywhere'; // It is known once all have heard of the join.
    const panel = new RingPanel(call, this.#ringing, { offered: rings, identityOf: dev ? identityInDev : (written) => written });
    showLeft(call, rings ? (identity, name) => panel.ring(identity, name) : null);
    offerInvitation({ room: call.room, key: this.#key, template, rings });
  }

  #listenForKeys() {
    this.#keys = new AbortController();
    foldControls(this.#keys.signal);
    listenForKeys({
      m: () => this.#toggle('microphone'),
      v: () => this.#toggle('camera'),
      s: () => this.#share?.toggle(),
      h: () => this.#gestures?.toggleHand(),
      r: () => this.#gestures?.toggleMenu(),
      l: () => this.#askToLeave(),
      c: () => this.#panels.toggle('chat'),
      p: () => this.#panels.toggle('people'),
      '?': () => {
        this.#panels.toggle('settings');
        if (this.#panels.open === 'settings') find('.keys', HTMLElement).scrollIntoView({ block: 'end' });
      },
      escape: () => {
        dismissNotices();
        this.#panels.close();
      },
    }, this.#keys.signal);
    keepAwake(this.#keys.signal);
    followSpeaker((id) => this.#tiles?.setSpeaker(id), this.#keys.signal);
    offerLayouts(() => this.#viewChosen(), this.#keys.signal);
    if (this.#call) showDetails(this.#call, () => this.#status?.moves ?? [], this.#keys.signal);
    if (this.#call?.mayPublish('microphone')) hintWhileMuted(this.#devices, () => this.#sayMuted(), this.#keys.signal);
  }

  /** In a tile's menu or in the bar; the settings follow. */
  #viewChosen() {
    this.#tiles?.choose();
    this.#refreshSettings();
  }

  /** Whether this person may end the call of others. */
  #mayEnd() {
    const call = this.#call;
    return Boolean(call?.moderation.allowed && call.roster.some(({ peer }) => peer !== call.peer));
  }

  #askToLeave() {
    const call = this.#call;
    if (!call) return;
    askToLeave({
      onLeave: () => call.leave(),
      onEnd: this.#mayEnd() ? () => {
        this.#ending = call;
        call.moderation.act('end-call');
      } : null,
    });
  }

  /**
   * Whether this person has ended the call for everybody.
   * @param {Call} call
   */
  ended(call) {
    return this.#ending === call;
  }

  #sayMuted() {
    notice(say('muted.speaking'), { forMs: 5000, action: say('microphone.turn.on'), onAction: () => this.#devices.on('microphone') || this.#toggle('microphone') });
  }

  #end() {
    this.#keys.abort();
    stopAsking();
    this.#panels.close();
    this.#root.hidden = find('#invite', HTMLElement).hidden = true;
    document.title = 'Holdfast';
    [this.#call, this.#tiles, this.#share, this.#chat, this.#people, this.#door, this.#gestures] = [null, null, null, null, null, null, null];
    this.#qualities.clear();
    this.#slow = false;
  }

  /** @param {import('../holdfast/slots.js').SlotChange} change */
  #slot({ kind, paused }) {
    this.#tiles?.paint();
    const slow = this.#call?.slots.some((slot) => slot.paused) ?? false;
    if (kind === 'video' && paused && !this.#slow && !this.#call?.limited) whisper(say('status.slow'));
    this.#slow = slow;
  }

  #roster() {
    if (!this.#tiles || !this.#call) return;
    const now = new Map(this.#call.roster.map(({ peer, name }) => [peer, name]));
    const came = [...now].filter(([peer]) => !this.#names.has(peer)).map(([, name]) => name);
    const went = [...this.#names].filter(([peer]) => !now.has(peer)).map(([, name]) => name);
    // Of an audience somebody may have been here all along.
    if (came.length > 0 && this.#call.audience === 0) notice(say('people.joined', { names: some(came), count: came.length }), { tone: 'news' });
    else if (went.length > 0) notice(say('people.went', { names: some(went), count: went.length }), { tone: 'news' });
    this.#names = now;
    this.#paint();
  }

  #paint() {
    for (const source of /** @type {const} */ (['microphone', 'camera'])) {
      const on = this.#devices.on(source);
      for (const button of document.querySelectorAll(`[data-toggle="${source}"]`)) {
        button.setAttribute('aria-pressed', String(on));
        name(button, say(`${source}.turn.${on ? 'off' : 'on'}`), source === 'microphone' ? 'M' : 'V');
        setIcon(button, `${source === 'microphone' ? 'mic' : 'camera'}${on ? '' : '-off'}`);
      }
    }
    const call = this.#call;
    if (!call || !this.#tiles) return;
    const sharing = this.#share?.stream != null;
    const share = find('#share', HTMLButtonElement);
    share.classList.toggle('active', sharing);
    name(share, say(sharing ? 'screen.stop' : 'screen.share'), 'S');
    showAllowed(document, (source) => call.mayPublish(source) && (source === 'screen' || this.#devices.may(source)), this.#devices);
    this.#root.classList.toggle('backwards', this.#devices.backwards);
    find('#alone', HTMLElement).hidden = call.roster.length + call.audience > 1;
    this.#tiles.refresh();
    this.#people?.show(this.#qualities);
    this.#gestures?.paint();
    if (this.#panels.open === 'settings') this.#picker.refresh();
  }

  /** @param {'microphone' | 'camera'} source */
  async #toggle(source) {
    if (this.#call && !this.#call.mayPublish(source)) return;
    try {
      await this.#devices.toggle(source);
    } catch (error) {
      if (!(error instanceof DeviceProblem)) throw error;
      if (this.#call) notice(error.message);
    }
  }

  /**
   * The call sends nothing of it already; the page's own switch follows.
   * @param {import('../holdfast/protocol.js').Source} source
   * @param {string} by
   */
  #mutedBy(source, by) {
    notice(mutedBy(source, by));
    if (source === 'screen') this.#share?.stop();
    else if (source === 'screen-audio') this.#paint();
    else if (this.#devices.on(source)) this.#toggle(source);
  }

  /**
   * @param {import('../holdfast/protocol.js').Source} source
   * @param {string} by
   */
  #askedToUnmute(source, by) {
    if (source === 'screen' || source === 'screen-audio') return; // Nobody's screen is asked for.
    const { text, action } = unmuteAsked(source, by);
    notice(text, { forMs: ASKED_MS, action, onAction: () => this.#devices.on(source) || this.#toggle(source) });
  }

  /** @param {'microphone' | 'camera'} source */
  async #send(source) {
    const call = this.#call;
    if (!call?.mayPublish(source)) return;
    this.#sayTrouble(source);
    await call.replaceTrack(source, this.#devices.track(source));
    await call.setMuted(source, this.#devices.off[source]);
    this.#paint();
  }

  /**
   * Of a session that expired during the call, and found the room full.
   * @param {{position: number, reason: string, estimateMs?: number}} place
   */
  #sayPlace(place) {
    const [title, text] = ofPlace(place);
    document.title = `${title} · Holdfast`;
    this.#withdrawPlace();
    this.#withdrawPlace = notice(`${title}. ${text}`, { forMs: 0, action: say('line.leave'), onAction: () => this.#call?.leave() });
  }

  /**
   * Until the device works again or is switched off.
   * @param {'microphone' | 'camera'} source
   */
  #sayTrouble(source) {
    this.#troubles.get(source)?.();
    const problem = this.#devices.off[source] ? '' : this.#devices.problems[source];
    if (problem !== '') this.#troubles.set(source, notice(problem, { forMs: 0, action: say('try.again'), onAction: () => this.#devices.retry() }));
  }

  #askForSound() {
    notice(say('sound.blocked'), { forMs: 0, action: say('sound.play'), onAction: () => this.#tiles?.play() });
  }
}
