// The room's chat. What people write is text, never markup.

import { find, make, who } from './elements.js';
import { pieces } from './links.js';
import { locale, say } from './words.js';

/** @typedef {import('../holdfast/call.js').Call} Call */
/** @typedef {import('../holdfast/chat.js').Line} Line */

const SHOWN = 500;

export class ChatPanel {
  #call;
  #list = find('#lines', HTMLElement);
  #field = find('#line', HTMLTextAreaElement);
  #badge = find('#unread', HTMLElement);
  /** @type {Map<string, HTMLElement>} */
  #own = new Map();
  #unread = 0;
  #open = false;
  #last = '';

  /** @param {Call} call */
  constructor(call) {
    this.#call = call;
    this.#list.replaceChildren();
    this.#list.dataset.empty = say('chat.empty');
    this.#setUnread(0);
    const stop = new AbortController();
    const { signal } = stop;
    find('#chat', HTMLFormElement).addEventListener('submit', (event) => this.#submit(event), { signal });
    this.#field.addEventListener('keydown', (event) => {
      if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) this.#submit(event);
    }, { signal });
    call.addEventListener('chat', (event) => this.#heard(/** @type {CustomEvent} */ (event).detail.line), { signal });
    call.addEventListener('left', () => stop.abort(), { once: true });
  }

  /** @param {boolean} open */
  setOpen(open) {
    this.#open = open;
    if (!open) return;
    this.#setUnread(0);
    this.#list.scrollTop = this.#list.scrollHeight;
  }

  /** @param {Event} event */
  #submit(event) {
    event.preventDefault();
    if (this.#call.say(this.#field.value)) this.#field.value = '';
  }

  /** @param {Line} line */
  #heard(line) {
    const known = line.own ? this.#own.get(line.id) : undefined;
    if (known) {
      known.dataset.state = line.state;
      return;
    }
    const { scrollTop, scrollHeight, clientHeight } = this.#list;
    const atEnd = scrollTop + clientHeight > scrollHeight - 40;
    const item = make('li', line.own ? 'line own' : 'line');
    item.dataset.state = line.state;
    // Lines of one person in a row have one head.
    if (this.#last !== line.peer) {
      const head = make('div', 'head');
      const time = make('time', '', new Date(line.at).toLocaleTimeString(locale, { hour: '2-digit', minute: '2-digit' }));
      time.dateTime = new Date(line.at).toISOString();
      head.append(who(line.own ? say('you') : line.name), time);
      item.append(head);
    }
    this.#last = line.peer;
    const text = textOf(line.text);
    text.dataset.failed = ` · ${say('chat.failed')}`;
    item.append(text);
    this.#list.append(item);
    while (this.#list.children.length > SHOWN) this.#list.firstElementChild?.remove();
    if (line.own) this.#own.set(line.id, item);
    if (atEnd || line.own) this.#list.scrollTop = this.#list.scrollHeight;
    if (!line.own && !this.#open) this.#setUnread(this.#unread + 1);
  }

  /** @param {number} count */
  #setUnread(count) {
    this.#unread = count;
    this.#badge.hidden = count === 0;
    find('#unread-word', HTMLElement).hidden = count === 0;
    this.#badge.textContent = count > 9 ? '9+' : String(count);
  }
}

/** @param {string} written */
function textOf(written) {
  const text = make('p', 'text');
  for (const { text: piece, href } of pieces(written)) {
    if (!href) {
      text.append(piece);
      continue;
    }
    const link = make('a', '', piece);
    [link.href, link.target, link.rel] = [href, '_blank', 'noopener noreferrer'];
    text.append(link);
  }
  return text;
}
