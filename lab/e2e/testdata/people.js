// For pictures of the page: people who are drawn instead of filmed, whatever the machine's
// camera gives; and everything that can go wrong, on request (window.stageFault).
(() => {
  const palettes = [
    ['#d9c2a3', '#7a8f86', '#f0c8a0', '#3b2a20', '#2f6f73'], ['#b9c7d1', '#5d7485', '#8d5a3b', '#1d1714', '#c7843a'],
    ['#cdbfd6', '#7c6b8f', '#e9b58f', '#7b4a22', '#34495e'], ['#c6d3bb', '#6f8a5c', '#c68b62', '#15110f', '#8c3b3b'],
    ['#e0cfc0', '#96786a', '#f3d2b5', '#b98745', '#3f5f4a'], ['#b7cfcf', '#4e7a7c', '#6b432c', '#0f0c0a', '#d6a84a'],
    ['#d5d0c4', '#8a8472', '#eabf9a', '#5a5a5e', '#5b4a7a'], ['#c3c9dc', '#5c668c', '#b67a52', '#241a15', '#4a7d63'],
    ['#dcc7c7', '#93686a', '#f1cbad', '#8a2f1d', '#2b3f55'], ['#c9d6d0', '#628077', '#7d4f35', '#1a1412', '#a7533f'],
    ['#d3c9b4', '#857650', '#e5b48b', '#40301f', '#3a6a86'], ['#bfcbd4', '#586d7b', '#f0caa8', '#d0a95c', '#6f3d58'],
  ];
  const round = (c, x, y, w, h, r) => { c.beginPath(); c.roundRect(x, y, w, h, r); c.fill(); };
  function room(c, w, h, [light, dark], kind) {
    const g = c.createLinearGradient(0, 0, w, h);
    g.addColorStop(0, light);
    g.addColorStop(1, dark);
    c.fillStyle = g;
    c.fillRect(0, 0, w, h);
    c.fillStyle = 'rgb(255 255 255 / 26%)';
    if (kind === 0) { round(c, w * 0.08, h * 0.1, w * 0.2, h * 0.46, 6); c.fillStyle = dark; c.fillRect(w * 0.175, h * 0.1, w * 0.01, h * 0.46); c.fillRect(w * 0.08, h * 0.32, w * 0.2, h * 0.014); }
    if (kind === 1) for (let i = 0; i < 3; i++) { c.fillStyle = 'rgb(255 255 255 / 24%)'; c.fillRect(w * 0.68, h * (0.2 + i * 0.2), w * 0.28, h * 0.018); for (let b = 0; b < 7; b++) { c.fillStyle = `hsl(${(b * 47 + i * 90) % 360} 22% ${46 + (b % 3) * 8}%)`; c.fillRect(w * (0.7 + b * 0.033), h * (0.085 + i * 0.2 + (b % 3) * 0.015), w * 0.022, h * (0.115 - (b % 3) * 0.015)); } }
    if (kind === 2) { c.beginPath(); c.arc(w * 0.82, h * 0.3, h * 0.13, 0, 7); c.fill(); c.fillStyle = 'rgb(0 0 0 / 10%)'; c.fillRect(0, h * 0.78, w, h * 0.22); }
    if (kind === 3) { c.fillStyle = 'rgb(38 78 52 / 55%)'; for (let i = 0; i < 6; i++) { c.beginPath(); c.ellipse(w * 0.14, h * 0.62, w * 0.022, h * 0.22, (i - 2.5) * 0.34, 0, 7); c.fill(); } c.fillStyle = 'rgb(120 70 50 / 70%)'; round(c, w * 0.105, h * 0.72, w * 0.07, h * 0.14, 6); }
  }
  function person(c, w, h, [, , skin, hair, shirt], n, t) {
    const x = w * (0.5 + 0.012 * Math.sin(t / 1900 + n)), y = h * (0.47 + 0.008 * Math.sin(t / 1300 + n * 2)), r = h * 0.17;
    const long = n % 3 === 0, bald = n % 7 === 6 && !long;
    if (long) { c.fillStyle = hair; round(c, x - r * 1.12, y - r * 0.9, r * 2.24, r * 2.7, r); }
    c.fillStyle = shirt;
    round(c, x - r * 2.1, y + r * 1.62, r * 4.2, h, r * 1.15);
    c.fillStyle = skin;
    round(c, x - r * 0.4, y + r * 0.6, r * 0.8, r * 1.4, r * 0.4);
    c.fillStyle = 'rgb(0 0 0 / 12%)';
    c.beginPath(); c.ellipse(x, y + r * 1.05, r * 0.42, r * 0.2, 0, 0, 7); c.fill();
    c.fillStyle = skin;
    c.beginPath(); c.ellipse(x, y, r * 0.88, r * 1.12, 0, 0, 7); c.fill();
    if (!bald) { c.fillStyle = hair; c.beginPath(); c.ellipse(x, y - r * 0.52, r * 0.95, r * 0.72, 0, Math.PI, 0); c.ellipse(x + r * 0.12, y - r * 0.52, r * 0.83, r * 0.24, 0, 0, Math.PI); c.fill(); }
    const blink = (t + n * 700) % 4100 < 130;
    c.fillStyle = '#201814';
    for (const side of [-1, 1]) { c.beginPath(); c.ellipse(x + side * r * 0.33, y - r * 0.02, r * 0.075, blink ? 1 : r * 0.1, 0, 0, 7); c.fill(); }
    if (n % 4 === 1) { c.strokeStyle = '#2a2420'; c.lineWidth = r * 0.055; for (const side of [-1, 1]) { c.beginPath(); c.arc(x + side * r * 0.34, y, r * 0.25, 0, 7); c.stroke(); } }
    c.strokeStyle = 'rgb(120 50 40 / 75%)'; c.lineWidth = r * 0.07; c.lineCap = 'round';
    c.beginPath(); c.arc(x, y + r * 0.3, r * 0.34, 0.35, Math.PI - 0.35); c.stroke();
  }
  const stream = (w, h, fps, draw) => {
    const canvas = Object.assign(document.createElement('canvas'), { width: w, height: h });
    const c = canvas.getContext('2d');
    const paint = () => draw(c, w, h, performance.now());
    paint();
    setInterval(paint, 1000 / fps);
    return canvas.captureStream(fps);
  };
  const voice = (loudness) => {
    const audio = new AudioContext();
    const [tone, gain, sink] = [audio.createOscillator(), audio.createGain(), audio.createMediaStreamDestination()];
    tone.frequency.value = 180;
    gain.gain.value = loudness;
    tone.connect(gain).connect(sink);
    tone.start();
    return sink.stream.getAudioTracks()[0];
  };
  window.drawnPerson = (n, { width = 640, height = 360, fps = 8, loudness = 0 } = {}) => {
    const colours = palettes[n % palettes.length];
    const made = stream(width, height, fps, (c, w, h, t) => { room(c, w, h, colours, n % 4); person(c, w, h, colours, n, t); });
    made.addTrack(voice(loudness));
    return made;
  };
  window.drawnSlide = () => stream(1280, 720, 5, (c, w, h, t) => {
    c.fillStyle = '#fbfbf8'; c.fillRect(0, 0, w, h);
    c.fillStyle = '#14333a'; c.font = '600 54px sans-serif'; c.fillText('Design review', 90, 150);
    c.fillStyle = '#159a86'; c.fillRect(92, 182, 120, 7);
    ['What we decided last week', 'One room, one node: the pin and its epoch', 'What a caller sees when a node dies', 'Questions'].forEach((line, i) => {
      c.fillStyle = '#159a86'; c.font = '600 34px sans-serif'; c.fillText(String(i + 1), 94, 290 + i * 92);
      c.fillStyle = '#2b474d'; c.font = '34px sans-serif'; c.fillText(line, 150, 290 + i * 92);
    });
    c.fillStyle = `rgb(21 154 134 / ${Math.round(50 + 50 * Math.sin(t / 500))}%)`; c.beginPath(); c.arc(1225, 60, 7, 0, 7); c.fill();
  });
  const fault = new URLSearchParams(location.search).get('fault') ?? '';
  const refuse = { denied: 'NotAllowedError', missing: 'NotFoundError', busy: 'NotReadableError' }[fault];
  navigator.mediaDevices.getUserMedia = async ({ audio, video }) => {
    if (fault === 'asking') await new Promise(() => {});
    if (refuse) throw new DOMException('staged', refuse);
    const made = window.drawnPerson(Number(new URLSearchParams(location.search).get('face') ?? 0), { width: 960, height: 540, fps: 10, loudness: 0.05 });
    for (const track of made.getTracks()) if (!(track.kind === 'audio' ? audio : video)) made.removeTrack(track);
    return made;
  };
  navigator.mediaDevices.getDisplayMedia = async () => window.drawnSlide();
  navigator.mediaDevices.enumerateDevices = async () => (refuse || fault === 'asking' ? [] : [
    { kind: 'audioinput', deviceId: 'm1', label: 'Desk microphone' }, { kind: 'audioinput', deviceId: 'm2', label: 'Headset' },
    { kind: 'videoinput', deviceId: 'c1', label: 'Built-in camera' }, { kind: 'audiooutput', deviceId: 's1', label: 'Built-in speakers' },
  ]);
  // A path too narrow for every picture: the node says of every other one that it holds it back.
  if (fault === 'narrow') {
    const Real = window.WebSocket;
    window.WebSocket = class extends Real {
      set onmessage(handle) {
        const held = (data) => {
          const message = JSON.parse(data);
          message.slots.filter(({ kind, peer }) => kind === 'video' && peer !== '').forEach((slot, i) => { slot.paused = i % 2 === 0; });
          handle({ data: JSON.stringify(message) });
        };
        let last = '';
        let narrow = false;
        window.holdBack = () => { narrow = true; held(last); };
        super.onmessage = handle && ((event) => {
          const table = JSON.parse(event.data).type === 'slots';
          if (table) last = event.data;
          if (table && narrow) held(last);
          else handle(event);
        });
      }
    };
  }
  if (fault === 'unreachable') {
    const real = window.fetch;
    window.fetch = (address, ...more) => (String(address).includes('token') ? Promise.reject(new TypeError('staged')) : real(address, ...more));
  }
  if (/^(room_full|token_expired|superseded|kicked|no_nodes)$/.test(fault)) {
    const Real = window.WebSocket;
    window.WebSocket = class extends EventTarget {
      constructor() { super(); setTimeout(() => this.onopen?.(), 50); }
      send() { setTimeout(() => this.onmessage?.({ data: JSON.stringify({ type: 'error', code: fault, message: fault, retryable: false }) }), 50); }
      close() {}
    };
    Object.assign(window.WebSocket, { OPEN: Real.OPEN });
  }
  // People for a room, all from one page.
  window.crowd = async (room, names) => {
    const { Call } = await import('/holdfast/index.js');
    window.calls = await Promise.all(names.map(async (name, i) => {
      const { token } = await (await fetch(`/api/v1/dev/token?${new URLSearchParams({ room, name })}`)).json();
      const call = new Call({ audioSlots: 0, videoSlots: 0, simulcast: false });
      if (i % 5 === 3) call.setMuted('microphone', true);
      if (i % 8 === 6 || i > 11) call.setMuted('camera', true);
      await call.join({ url: location.origin, room, name, token, stream: window.drawnPerson(i + 1, { loudness: i === 1 ? 0.4 : 0 }) });
      return call;
    }));
    return window.calls.length;
  };
})();
