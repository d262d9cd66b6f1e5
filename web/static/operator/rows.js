// A list of any length of which only the rows in sight are in the document.

/** Rows beyond the edges, so that a short scroll finds them there. */
const SPARE = 4;

/** @template {HTMLElement} R */
export class Rows {
  #scroller;
  #fill;
  #make;
  #height;
  #inner = document.createElement('div');
  /** @type {R[]} */
  #pool = [];
  #count = 0;
  #first = -1;

  /**
   * @param {HTMLElement} scroller
   * @param {{height: number, make: () => R, fill: (row: R, index: number) => void}} options `height` of a row in px
   */
  constructor(scroller, { height, make, fill }) {
    this.#scroller = scroller;
    this.#height = height;
    this.#make = make;
    this.#fill = fill;
    this.#inner.className = 'rows-inner';
    this.#inner.setAttribute('role', 'presentation');
    scroller.append(this.#inner);
    scroller.addEventListener('scroll', () => this.#place(false), { passive: true });
    scroller.addEventListener('keydown', (event) => this.#step(event));
    new ResizeObserver(() => this.#place(false)).observe(scroller);
  }

  /** The indices in sight, with the spare ones. */
  get span() {
    const first = Math.max(Math.floor(this.#scroller.scrollTop / this.#height) - SPARE, 0);
    const most = Math.ceil(this.#scroller.clientHeight / this.#height) + 2 * SPARE;
    return { first, last: Math.min(first + most, this.#count) };
  }

  /** @param {number} count */
  show(count) {
    if (count !== this.#count) {
      this.#count = count;
      this.#inner.style.height = `${count * this.#height}px`;
      this.#scroller.closest('[role="table"]')?.setAttribute('aria-rowcount', String(count));
      // The rows that were far down would keep the list as long as it was.
      this.#scroller.scrollTop = Math.min(this.#scroller.scrollTop, Math.max(count * this.#height - this.#scroller.clientHeight, 0));
    }
    this.#place(true);
  }

  /** @param {boolean} refill */
  #place(refill) {
    const { first, last } = this.span;
    if (!refill && first === this.#first && this.#pool.length >= last - first) return;
    this.#first = first;
    while (this.#pool.length < last - first) {
      const row = this.#make();
      row.classList.add('row');
      row.setAttribute('role', 'row');
      row.style.height = `${this.#height}px`;
      this.#pool.push(row);
      this.#inner.append(row);
    }
    for (const [slot, row] of this.#pool.entries()) {
      // A row keeps its element while it is in sight, and so the focus in it.
      const index = first + ((((slot - first) % this.#pool.length) + this.#pool.length) % this.#pool.length);
      row.hidden = index >= last;
      if (row.hidden) continue;
      row.style.transform = `translateY(${index * this.#height}px)`;
      row.setAttribute('aria-rowindex', String(index + 1));
      this.#fill(row, index);
    }
  }

  /** @param {KeyboardEvent} event */
  #step(event) {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const row = event.target instanceof Element ? event.target.closest('[role="row"]') : null;
    if (!by || !row) return;
    const index = Number(row.getAttribute('aria-rowindex')) - 1 + by;
    if (index < 0 || index >= this.#count) return;
    event.preventDefault();
    const [top, bottom] = [index * this.#height, (index + 1) * this.#height];
    if (top < this.#scroller.scrollTop) this.#scroller.scrollTop = top;
    else if (bottom > this.#scroller.scrollTop + this.#scroller.clientHeight) this.#scroller.scrollTop = bottom - this.#scroller.clientHeight;
    this.#place(false);
    const next = this.#pool.find((other) => !other.hidden && other.getAttribute('aria-rowindex') === String(index + 1));
    next?.querySelector('button')?.focus({ preventScroll: true });
  }
}
