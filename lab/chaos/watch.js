// Notes when the page's connections took which step, and when each remote picture
// was shown, for lab/chaos. It runs before the page's own scripts, and the page
// knows nothing of it. Times are Unix milliseconds.
(() => {
  const KEPT = 4000; // frames and moments; the oldest fall off
  const connections = [];
  const moments = [];
  const frames = [];
  const said = []; // what the page said to its signaling node
  const watched = new WeakSet();
  const keep = (list, item) => {
    list.push(item);
    if (list.length > KEPT) list.splice(0, KEPT / 4);
  };
  const note = (step, epoch = 0) => keep(moments, { step, epoch, at: Date.now() });

  const watchTransports = (connection) => {
    for (const { transport } of connection.getReceivers()) {
      if (!transport || watched.has(transport)) continue;
      watched.add(transport);
      transport.addEventListener('statechange', () => transport.state === 'connected' && note('dtls'));
      transport.iceTransport?.addEventListener('selectedcandidatepairchange', () => note('ice'));
    }
  };
  globalThis.RTCPeerConnection = class extends globalThis.RTCPeerConnection {
    constructor(...args) {
      super(...args);
      connections.push(this);
      if (connections.length > 20) connections.shift();
    }
    async setLocalDescription(...args) {
      const value = await super.setLocalDescription(...args);
      watchTransports(this);
      return value;
    }
    setRemoteDescription(...args) {
      note('answer');
      return super.setRemoteDescription(...args).then((value) => {
        watchTransports(this);
        return value;
      });
    }
  };

  // Sent, not set: the node does not wait for the browser to set it.
  const { send } = WebSocket.prototype;
  WebSocket.prototype.send = function (data) {
    if (typeof data === 'string' && data.startsWith('{"type":"offer"')) note('offer');
    if (typeof data === 'string' && data.startsWith('{"type":')) keep(said, { at: Date.now(), data: data.slice(0, 1500) });
    return send.call(this, data);
  };

  const isRemote = (video) => {
    const tracks = new Set(connections.flatMap((c) => c.getReceivers().map((r) => r.track)));
    return video.srcObject?.getVideoTracks().some((track) => tracks.has(track)) ?? false;
  };
  let pictures = 0;
  const watchVideo = (video) => {
    const of = `picture ${++pictures}`;
    const shown = (_, { presentationTime }) => {
      if (isRemote(video)) keep(frames, { of, at: Date.now() - (performance.now() - presentationTime) });
      video.requestVideoFrameCallback(shown);
    };
    video.requestVideoFrameCallback(shown);
  };
  let call;
  setInterval(() => {
    for (const video of document.querySelectorAll('video')) {
      if (watched.has(video)) continue;
      watched.add(video);
      watchVideo(video);
    }
    if (!globalThis.call || globalThis.call === call) return;
    call = globalThis.call;
    call.addEventListener('continued', ({ detail }) => note('continued', detail.epoch));
    call.addEventListener('migration', ({ detail }) => detail.phase === 'started' && note('restart', detail.epoch));
  }, 50);

  // For a promise that was broken: what the browser says of its connections and its pictures.
  globalThis.__evidence = async () => ({
    visibility: document.visibilityState,
    roster: globalThis.call?.roster,
    state: globalThis.call?.state,
    said: said.slice(-40),
    moments: moments.slice(-60),
    videos: [...document.querySelectorAll('video')].map((v) => ({
      width: v.videoWidth, height: v.videoHeight, box: v.getBoundingClientRect(), paused: v.paused, hidden: v.hidden, remote: isRemote(v),
      tracks: v.srcObject?.getTracks().map(({ id, kind, muted, readyState, enabled }) => ({ id, kind, muted, readyState, enabled })),
    })),
    lastFrames: frames.slice(-40),
    connections: await Promise.all(connections.filter((c) => c.signalingState !== 'closed').map(async (c) => ({
      signaling: c.signalingState, ice: c.iceConnectionState, connection: c.connectionState,
      stats: [...(await c.getStats()).values()].filter(({ type }) => !/codec|certificate|candidate$|playout/.test(type)),
    }))),
  });
  globalThis.__account = (since) => ({
    live: globalThis.call?.state === 'live',
    joined: Boolean(globalThis.call?.peer),
    moments: moments.filter((m) => m.at >= since),
    frames: frames.filter((f) => f.at >= since),
  });
})();
