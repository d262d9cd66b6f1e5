// A stand-in for React, with as much of its interface as examples/react uses: function components, three hooks, keyed children. Real React is the
// application's own; the test of the example needs none to be installed.

/** @type {any} */
let current = null;

function cell(make) {
  const n = current.at++;
  return (current.hooks[n] ??= make());
}

export const useRef = (initial) => cell(() => ({ current: initial }));

export function useState(initial) {
  const { redraw } = current;
  const state = cell(() => ({ value: initial }));
  const set = (next) => {
    state.value = typeof next === 'function' ? next(state.value) : next;
    redraw();
  };
  return [state.value, set];
}

export function useEffect(run, inputs) {
  const effect = cell(() => ({ inputs: [NaN, {}] }));
  if (inputs.length === effect.inputs.length && inputs.every((input, n) => Object.is(input, effect.inputs[n]))) return;
  effect.inputs = inputs;
  current.effects.push(() => {
    effect.end?.();
    effect.end = run();
  });
}

export const createElement = (type, props, ...children) => ({ type, props: props ?? {}, children: children.flat() });

function unmount(place) {
  for (const { end } of place.hooks) if (typeof end === 'function') end();
  for (const child of place.children.values()) unmount(child);
  place.node?.remove();
}

function draw(place, element, parent, redraw) {
  if (typeof element !== 'object') {
    if (!place.node) parent.append((place.node = document.createTextNode('')));
    place.node.data = `${element}`;
    return;
  }
  const { type, props, children } = element;
  let [inside, into] = [children, parent];
  if (typeof type === 'function') {
    const before = current;
    current = Object.assign(place, { at: 0, redraw });
    inside = [type({ ...props, children })];
    current = before;
  } else {
    if (!place.node) parent.append((place.node = document.createElement(type)));
    for (const [name, value] of Object.entries(props)) {
      if (name === 'ref') value.current = place.node;
      else if (name === 'onClick') place.node.onclick = value;
      else if (name in place.node) place.node[name] = value;
      else if (name !== 'key') place.node.setAttribute(name, value);
    }
    into = place.node;
  }
  const drawn = new Set();
  inside.forEach((child, n) => {
    const key = child?.props?.key ?? n;
    drawn.add(key);
    if (!place.children.has(key)) place.children.set(key, { hooks: [], effects: [], children: new Map() });
    draw(place.children.get(key), child, into, redraw);
  });
  for (const [key, child] of place.children) {
    if (drawn.has(key)) continue;
    unmount(child);
    place.children.delete(key);
  }
  for (const effect of place.effects.splice(0)) effect();
}

export function createRoot(parent) {
  const place = { hooks: [], effects: [], children: new Map() };
  let element = null;
  let due = false;
  const redraw = () => {
    if (due) return;
    due = true;
    queueMicrotask(() => {
      due = false;
      if (element) draw(place, element, parent, redraw);
    });
  };
  const root = {
    render: (given) => {
      element = given;
      redraw();
    },
    unmount: () => {
      element = null;
      unmount(place);
    },
  };
  return (globalThis.root = root); // For the test.
}
