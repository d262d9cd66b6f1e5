// The room's chat, and what is written to one person of it. What people write is text, never markup.

import { find, make, who } from './elements.js';
import { pieces } from './links.js';
import { persons } from './persons.js';
import { whisper } from './notices.js';
import { ofCall } from './sentences.js';
import { locale, say } from './words.js';

/** @typedef {import('../holdfast/call.js').Call} Call */
/** @typedef {import('../holdfast/chat.js').Line} Line */

const SHOWN = 500;

export class ChatPanel {
  #call;
  #list = find('#lines', HTMLElement);
  #field = find('#line', HTMLTextAreaElement);
  #to = find('#to', HTMLSelectElement);
  #badge = find('#unread', HTMLElement);
  #unread = 0;
  #open = false;
  #last = '';

  /** @param {Call} call */
  constructor(call) {
    this.#call = call;
    this.#list.replaceChildren();
    this.#list.dataset.empty = say('chat.empty');
    this.#setUnread(0);
    this.#to.replaceChildren();
    this.#choices();
    const stop = new AbortController();
    const { signal } = stop;
    find('#chat', HTMLFormElement).addEventListener('submit', (event) => this.#submit(event), { signal });
    this.#field.addEventListener('keydown', (event) => {
      if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) this.#submit(event);
    }, { signal });
    call.addEventListener('chat', (event) => this.#heard(/** @type {CustomEvent} */ (event).detail.line), { signal });
    call.addEventListener('roster', () => this.#choices(), { signal });
    this.#to.addEventListener('change', () => this.#choices(), { signal });
    call.messages.addEventListener('message', (event) => this.#written(/** @type {CustomEvent} */ (event).detail), { signal });
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
    if (this.#to.value !== '') this.#write(this.#to.value, this.#field.value.trim());
    else if (this.#call.say(this.#field.value)) this.#field.value = '';
  }

  /** Whom one may write to. Who was chosen stays chosen, also when they left: else what is meant for one went to everybody. */
  #choices() {
    const { roster, peer, messages } = this.#call;
    const self = roster.find((entry) => entry.peer === peer)?.identity;
    const others = persons(roster, peer).filter(({ identity }) => identity !== self);
    const chosen = this.#to.selectedOptions[0];
    const options = [new Option(say('chat.everyone'), ''), ...others.map(({ name, identity }) => new Option(name || identity, identity))];
    if (chosen && !options.some(({ value }) => value === chosen.value)) options.push(chosen);
    this.#to.replaceChildren(...options);
    this.#to.value = chosen?.value ?? '';
    find('#to-choice', HTMLElement).hidden = messages.scope === '' || options.length === 1;
    const [option] = this.#to.selectedOptions;
    const hint = option.value === '' ? say('chat.write') : say('chat.write.to', { name: option.text });
    this.#field.placeholder = hint;
    this.#field.ariaLabel = hint;
    this.#field.classList.toggle('private', option.value !== '');
  }

  /**
   * @param {string} to
   * @param {string} text
   */
  #write(to, text) {
    if (text === '') return;
    const name = this.#to.selectedOptions[0].text;
    const item = this.#add({ key: `to ${to}`, own: true, name: say('private.to', { name }), text, at: Date.now(), state: 'sending' }, true);
    this.#field.value = '';
    const fate = make('span', 'fate', say('private.sending'));
    item.append(fate);
    /** @type {(state: 'sent' | 'failed', word: string) => void} */
    const became = (state, word) => {
      item.dataset.state = state;
      fate.textContent = word;
      whisper(word);
    };
    this.#call.messages.send(to, text).then((delivery) => {
      if (delivery === 'delivered') became('sent', say('private.delivered'));
      else became('failed', say(`private.${delivery}`, { name }));
    }, (error) => became('failed', error.code === 'left' ? say('chat.failed') : ofCall(error)));
  }

  /** @param {{from: string, name: string, kind: string, body: unknown, at: number}} message */
  #written({ from, name, kind, body, at }) {
    if ((kind !== 'text' && kind !== 'notice') || typeof body !== 'string') return;
    this.#add({ key: `from ${from}`, own: false, name: name || from, text: body, at, state: 'sent' }, true);
    if (!this.#open) whisper(say('private.heard', { name: name || from, text: body }));
  }

  /** @param {Line} line */
  #heard(line) {
    const known = line.own && this.#list.querySelector(`[data-sent-as="${CSS.escape(line.id)}"]`);
    if (known instanceof HTMLElement) {
      known.dataset.state = line.state;
      return;
    }
    const item = this.#add({ key: line.peer, ...line, name: line.own ? say('you') : line.name }, false);
    if (line.own && line.state !== 'sent') item.dataset.sentAs = line.id;
  }

  /**
   * @param {{key: string, own: boolean, name: string, text: string, at: number, state: string}} line `key`: whose lines in a row have one head
   * @param {boolean} secret
   */
  #add(line, secret) {
    const { scrollTop, scrollHeight, clientHeight } = this.#list;
    const atEnd = scrollTop + clientHeight > scrollHeight - 40;
    const item = make('li', line.own ? 'line own' : 'line');
    item.dataset.state = line.state;
    if (this.#last !== line.key) {
      const head = make('div', 'head');
      const time = make('time', '', new Date(line.at).toLocaleTimeString(locale, { hour: '2-digit', minute: '2-digit' }));
      time.dateTime = new Date(line.at).toISOString();
      head.append(who(line.name), ...(secret ? [make('span', 'host', say('private'))] : []), time);
      item.append(head);
    }
    this.#last = line.key;
    item.classList.toggle('private', secret);
    const text = textOf(line.text);
    if (!secret) text.dataset.failed = ` · ${say('chat.failed')}`;
    item.append(text);
    this.#list.append(item);
    while (this.#list.children.length > SHOWN) this.#list.firstElementChild?.remove();
    if (atEnd || line.own) this.#list.scrollTop = this.#list.scrollHeight;
    if (!line.own && !this.#open) this.#setUnread(this.#unread + 1);
    return item;
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
