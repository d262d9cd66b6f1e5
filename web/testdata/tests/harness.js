// A test harness of one page: cases, assertions, and a report.

const cases = [];
const CASE_LIMIT_MS = 90000;

export function test(name, body) {
  cases.push({ name, body });
}

/** Runs every case in its order; the report goes to web_test.go. */
export async function run() {
  const results = [];
  for (const { name, body } of cases) {
    const cleanups = [];
    let error = '';
    try {
      await Promise.race([late(name), body({ cleanup: (f) => cleanups.push(f) })]); // The limit first: a case may stop the clock.
    } catch (thrown) {
      error = `${thrown}\n${thrown?.stack ?? ''}`; // Firefox's stack leaves the message out.
    }
    for (const cleanup of cleanups.reverse()) cleanup();
    results.push({ name, error });
  }
  return results;
}

function late(name) {
  return new Promise((_, reject) => setTimeout(() => reject(new Error(`${name}: not over in time`)), CASE_LIMIT_MS));
}

export function ok(value, what = 'value') {
  if (!value) throw new Error(`${what}: expected a truth, got ${value}`);
}

export function equal(got, want, what = 'value') {
  const [g, w] = [JSON.stringify(sorted(got)), JSON.stringify(sorted(want))];
  if (g !== w) throw new Error(`${what}:\n got ${g}\nwant ${w}`);
}

export function same(got, want, what = 'object') {
  if (got !== want) throw new Error(`${what}: not the same object`);
}

/** Waits until a condition holds; the limit is generous and only says when to stop hoping. */
export async function eventually(condition, what, limitMs = 45000) {
  const until = performance.now() + limitMs;
  let value;
  while (performance.now() < until) {
    value = await condition();
    if (value) return value;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error(`${what}: did not happen (last: ${JSON.stringify(value)})`);
}

export function once(target, type, accept = () => true) {
  return new Promise((resolve) => {
    const listener = (event) => {
      if (!accept(event.detail)) return;
      target.removeEventListener(type, listener);
      resolve(event.detail);
    };
    target.addEventListener(type, listener);
  });
}

// Objects compare by what they hold, not by the order of their keys.
function sorted(value) {
  if (Array.isArray(value)) return value.map(sorted);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.keys(value).sort().map((key) => [key, sorted(value[key])]));
}
