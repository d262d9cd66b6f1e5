// A cluster in the page: signaling nodes that are stand-ins for WebSocket, and
// SFU nodes that are RTCPeerConnections of this browser, each with a certificate of its own.

import { SUBPROTOCOL } from '/holdfast/protocol.js';

/** A moving picture and a tone, as somebody else in the room would send them. */
export function someone() {
  const canvas = document.createElement('canvas');
  [canvas.width, canvas.height] = [160, 90];
  const context = canvas.getContext('2d');
  let n = 0;
  const timer = setInterval(() => {
    context.fillStyle = `hsl(${(n += 7) % 360} 80% 50%)`;
    context.fillRect(0, 0, 160, 90);
  }, 40);
  const audio = new AudioContext();
  const [tone, sink] = [audio.createOscillator(), audio.createMediaStreamDestination()];
  tone.connect(sink);
  tone.start();
  const stream = new MediaStream([...canvas.captureStream(25).getTracks(), ...sink.stream.getTracks()]);
  return { stream, stop: () => (clearInterval(timer), audio.close()) };
}

class FakeNode {
  pc = null;
  offers = [];
  /** How many sources the client can send: its slots come after them. */
  senders = 3;
  /** Whether the picture is sent to whoever makes this offer. */
  shows = () => true;

  constructor(name, stream) {
    this.name = name;
    this.stream = stream;
  }

  async answer(offer) {
    const { sdp, fresh } = offer;
    if (!this.pc || fresh) {
      this.pc?.close();
      this.pc = new RTCPeerConnection();
    }
    const { pc } = this;
    this.senders = sdp.match(/^a=sendonly/gm).length;
    await pc.setRemoteDescription({ type: 'offer', sdp });
    for (const transceiver of pc.getTransceivers()) {
      if (Number(transceiver.mid) < this.senders) continue;
      transceiver.direction = 'sendonly';
      const sound = transceiver.receiver.track.kind === 'audio';
      const [track] = sound ? this.stream.getAudioTracks() : this.stream.getVideoTracks();
      await transceiver.sender.replaceTrack(sound || this.shows(offer) ? track : null);
    }
    await pc.setLocalDescription();
    while (pc.iceGatheringState !== 'complete') {
      await new Promise((resolve) => pc.addEventListener('icegatheringstatechange', resolve, { once: true }));
    }
    return pc.localDescription.sdp;
  }

  /** Sends the picture from now on. */
  async show(slot = '4') {
    const [track] = this.stream.getVideoTracks();
    await this.pc.getTransceivers().find(({ mid }) => mid === slot).sender.replaceTrack(track);
  }

  /** Sends the picture so much smaller. */
  async scale(by) {
    const { sender } = this.pc.getTransceivers().find(({ mid }) => mid === '4');
    const parameters = sender.getParameters();
    for (const encoding of parameters.encodings) encoding.scaleResolutionDownBy = by;
    await sender.setParameters(parameters);
  }

  kill() {
    this.pc?.close();
    this.pc = null;
    this.dead = true;
  }
}

/** One room with one other person in it, `ada`, shown in the first audio and the first video slot. */
export class FakeCluster {
  sockets = [];
  heard = [];
  nodes = new Map();
  epoch = 1000;
  refuseSockets = 0;
  joinError = null;
  /** Whether whoever joins is in line, and told so by the case. */
  waits = false;
  permissions = {};
  /** Whether whoever joins hears of it only after an offer has come. Who waits in line is let in then, too. */
  slow = false;
  /** Whether the nodes take the sound of a screen. */
  screenAudio = false;
  resumeReply = {};
  /** Of media, as clients have told. */
  paths = [];
  /** Whether answers lead nowhere. */
  unreachable = false;

  constructor(stream) {
    this.stream = stream;
    this.move('n1', { silent: true });
    const cluster = this;
    this.WebSocket = class extends EventTarget {
      constructor(url, protocol) {
        super();
        this.url = url;
        if (protocol !== SUBPROTOCOL) throw new Error(`subprotocol ${protocol}`);
        setTimeout(() => (cluster.refuseSockets-- > 0 ? this.onclose?.({ code: 1006 }) : cluster.accept(this)), 0);
      }
      send(text) {
        cluster.hear(this, JSON.parse(text));
      }
      close() {
        this.closed = true;
      }
    };
  }

  get node() {
    return this.nodes.get(this.nodeName);
  }

  accept(socket) {
    this.sockets.push(socket);
    this.socket = socket;
    socket.onopen?.();
  }

  say(message) {
    if (!this.socket?.closed) this.socket?.onmessage?.({ data: JSON.stringify(message) });
  }

  /** The socket breaks, as when a signaling node dies. */
  cut() {
    const { socket } = this;
    this.socket = null;
    socket.onclose?.({ code: 1006 });
  }

  /** The room lives on another node from now on. A machine that is busy must not make a second attempt of a slow first one. */
  move(name, { silent = false, sameEpoch = false, ...order } = {}) {
    this.nodeName = name;
    if (!sameEpoch) this.epoch++;
    this.nodes.set(name, new FakeNode(name, this.stream));
    if (!silent) this.order(order);
  }

  order(order) {
    this.say({ type: 'restart', node: this.nodeName, epoch: this.epoch, screenAudio: this.screenAudio, reason: 'node died', attempts: 3, attemptMs: 20000, ...order });
  }

  get roster() {
    return ['me', 'ada'].map((peer) => ({ peer, identity: peer, name: peer, audioMuted: false, videoMuted: false }));
  }

  slots(audioMid = `${this.node.senders}`, videoMid = `${this.node.senders + 1}`) {
    return [
      { mid: audioMid, kind: 'audio', peer: 'ada', source: 'microphone' },
      { mid: videoMid, kind: 'video', peer: 'ada', source: 'camera' },
    ];
  }

  async hear(socket, { request, ...message }) {
    if (message.type === 'ping') {
      if (message.path) this.paths.push(message.path);
      if (socket === this.socket) this.say({ type: 'pong', t: message.t });
      return;
    }
    this.heard.push(message);
    const { roster } = this;
    const place = { node: this.nodeName, epoch: this.epoch, screenAudio: this.screenAudio };
    if (message.type === 'join') {
      if (this.waits) return;
      if (this.joinError) return this.say({ type: 'error', ...this.joinError });
      if (!this.slow) this.enter();
    }
    if (message.type === 'resume') {
      if (this.resumeError) return this.say({ type: 'error', ...this.resumeError });
      this.say({ type: 'resumed', ...place, seq: 1, roster, slots: this.slots(), resume: 'token-2', mediaAlive: true, ...this.resumeReply });
    }
    if (message.type !== 'offer') return;
    const { waits, slow } = this;
    if (waits && slow) this.say({ type: 'waiting', position: 1, reason: 'full' });
    if (waits) this.say({ type: 'error', code: 'bad_message', message: 'In line.', request });
    if (slow) {
      this.waits = this.slow = false;
      this.enter();
    }
    if (!waits) await this.answer(message, place);
  }

  enter() {
    const { roster } = this;
    const place = { node: this.nodeName, epoch: this.epoch, screenAudio: this.screenAudio };
    this.say({ type: 'joined', protocol: 1, room: 'r', peer: 'me', identity: 'me', name: 'me', resume: 'token-1', ...place, seq: 1, roster, iceServers: [], permissions: { publish: true, subscribe: true, chat: true, rename: false, ...this.permissions } });
  }

  async answer(offer, place) {
    const { node } = this;
    node.offers.push(offer);
    if (this.loseAnswers > 0) {
      this.loseAnswers--;
      return;
    }
    if (this.rejectOffers > 0) {
      this.rejectOffers--;
      this.say({ type: 'offer-rejected', id: offer.id, code: 'internal', message: 'No.', epoch: place.epoch });
      return;
    }
    let sdp = await node.answer(offer);
    if (this.unreachable) sdp = sdp.replace(/^(a=candidate:\S+ \d+ \S+ \d+) \S+ \d+/gm, '$1 127.0.0.1 1049');
    this.say({ type: 'answer', id: offer.id, sdp, ...place });
    // As a node does that makes one slot after the other.
    if (place.epoch === this.epoch && !offer.fresh) this.say({ type: 'slots', slots: this.slots().slice(0, 1), epoch: place.epoch });
    if (place.epoch === this.epoch) this.say({ type: 'slots', slots: this.slots(), epoch: place.epoch });
  }
}
