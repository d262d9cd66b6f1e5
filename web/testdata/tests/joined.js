// A call in a fake cluster, with one other person.

import { attach, Call } from '/holdfast/index.js';
import { FakeCluster, someone } from './fake-cluster.js';
import { eventually, once } from './harness.js';

export async function joined({ cleanup }, options = {}, permissions = {}, staged = {}) {
  const other = someone();
  const cluster = new FakeCluster(other.stream);
  Object.assign(cluster, { permissions, ...staged });
  const stream = await navigator.mediaDevices.getUserMedia({ audio: true, video: { width: 320, height: 180, frameRate: 15 } });
  const call = new Call({ audioSlots: 1, videoSlots: 1, WebSocket: cluster.WebSocket, ...options });
  call.events = [];
  call.errors = [];
  call.addEventListener('error', ({ detail }) => call.errors.push(detail.code));
  call.addEventListener('migration', ({ detail }) => call.events.push(detail));
  const video = document.createElement('video');
  [video.muted, video.playsInline] = [true, true];
  document.body.append(video);
  cleanup(() => {
    call.leave();
    for (const track of stream.getTracks()) track.stop();
    other.stop();
    video.remove();
  });
  await staged.before?.(call);
  await call.join({ url: location.origin, token: 't', name: 'me', stream });
  attach(video, call.stream('ada', 'camera'));
  await flowing(call, video);
  return { cluster, call, video, stream };
}

export async function flowing(call, video) {
  const look = async () => {
    const slots = Object.values((await call.stats()).perSlot);
    const of = (source) => slots.find((slot) => slot.source === source);
    return { packets: of('microphone')?.packetsReceived ?? 0, frames: of('camera')?.framesDecoded ?? 0 };
  };
  const before = await look();
  await eventually(async () => {
    const { packets, frames } = await look();
    return packets > before.packets + 5 && frames > before.frames + 3;
  }, 'media flows');
  // Not getVideoPlaybackQuality: Firefox counts no frames of a MediaStream.
  let shown = 0;
  const each = () => ++shown < 3 && video.requestVideoFrameCallback(each);
  video.requestVideoFrameCallback(each);
  await eventually(() => shown >= 3, 'the element shows new frames');
}

export const done = (call) => once(call, 'migration', ({ phase }) => phase === 'done');
