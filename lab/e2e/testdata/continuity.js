// How evenly the pictures and the sound of others come, over every connection: `continuity.take()` tells it since the
// last time. A stream counts while its track is in an element, and sound while it is enabled, too.

globalThis.continuity = (() => {
  const STATS_MS = 200;
  const pictures = new Map(); // by element
  const before = new Map(); // by connection and statistics id
  const nothing = { decodedMs: 0, concealed: 0, run: 0, burst: 0, states: [], tiles: [], bare: 0 };
  let seen = structuredClone(nothing);
  const open = () => globalThis.__connections.filter((pc) => pc.signalingState !== 'closed');
  const cameras = () => call.roster.filter(({ peer }) => peer !== call.peer).map(({ peer }) => call.stream(peer, 'camera'));
  const elements = [...document.querySelectorAll('video')].filter((video) => cameras().includes(video.srcObject));

  for (const video of elements) {
    const p = { at: performance.now(), longest: 0 };
    pictures.set(video, p);
    const each = () => {
      const now = performance.now();
      p.longest = Math.max(p.longest, now - p.at);
      p.at = now;
      if (video.videoWidth === 0) seen.bare++; // An element that ended for a moment shows its last picture.
      video.requestVideoFrameCallback(each);
    };
    video.requestVideoFrameCallback(each);
  }

  // At most: of so many times their sum and the sum of their squares are known, and the page may look late.
  const longest = (n, sum, squares) => (n === 0 ? 0 : 1000 * (sum / n + Math.sqrt(Math.max(0, (n - 1) * (squares / n - (sum / n) ** 2)))));

  const shown = () => new Set([...document.querySelectorAll('audio, video')].flatMap(({ srcObject }) => srcObject?.getTracks() ?? []).filter(({ enabled }) => enabled).map(({ id }) => id));
  let looking = false;
  setInterval(async () => {
    if (looking) return;
    looking = true;
    const tracks = shown();
    let made = 0;
    for (const pc of open()) {
      for (const now of (await pc.getStats()).values()) {
        if (now.type !== 'inbound-rtp') continue;
        const id = `${globalThis.__connections.indexOf(pc)} ${now.id}`;
        const then = before.get(id);
        before.set(id, now);
        if (!then || !tracks.has(now.trackIdentifier)) continue;
        const grown = (name) => (now[name] ?? 0) - (then[name] ?? 0);
        if (now.kind === 'audio') made = Math.max(made, grown('concealedSamples') - grown('silentConcealedSamples'));
        if (now.kind === 'video') seen.decodedMs = Math.max(seen.decodedMs, longest(grown('framesDecoded'), grown('totalInterFrameDelay'), grown('totalSquaredInterFrameDelay')));
      }
    }
    seen.concealed += made;
    seen.run = made > 0 ? seen.run + made : 0;
    seen.burst = Math.max(seen.burst, seen.run);
    looking = false;
  }, STATS_MS);

  call.addEventListener('state', ({ detail: { state } }) => seen.states.push(state));
  new MutationObserver((changes) => {
    for (const { type, target, addedNodes, removedNodes, oldValue } of changes) {
      const tiles = [...addedNodes, ...removedNodes].filter((node) => node.classList?.contains('tile'));
      if (tiles.length > 0) seen.tiles.push(`${addedNodes.length} came, ${removedNodes.length} went`);
      const dark = (text) => /\bdark\b|\bloading\b/.test(text);
      if (type === 'attributes' && target.classList.contains('tile') && dark(target.className) && !dark(oldValue ?? '')) seen.tiles.push('dark');
    }
  }).observe(document.body, { subtree: true, childList: true, attributes: true, attributeFilter: ['class'], attributeOldValue: true });

  return {
    pictures: elements.length,
    open: () => open().length,
    take() {
      const { concealed, burst, ...rest } = seen;
      const shownMs = Math.max(0, ...[...pictures.values()].map(({ longest }) => longest));
      for (const p of pictures.values()) p.longest = 0;
      seen = { ...structuredClone(nothing), run: seen.run };
      return { ...rest, shownMs, concealedMs: concealed / 48, burstMs: burst / 48 };
    },
  };
})();
