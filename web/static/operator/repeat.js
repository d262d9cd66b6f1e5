// Asks again and again, one question at a time, and not while nobody looks.

/**
 * @param {() => number} pause in ms, from the end of a turn to the next
 * @param {() => Promise<void>} turn
 * @returns {() => void} asks at once
 */
export function repeat(pause, turn) {
  let timer = 0;
  let busy = false;
  const run = async () => {
    if (busy || document.hidden) return;
    busy = true;
    clearTimeout(timer);
    try {
      await turn();
    } finally {
      busy = false;
      timer = setTimeout(run, pause());
    }
  };
  document.addEventListener('visibilitychange', run);
  run();
  return run;
}
