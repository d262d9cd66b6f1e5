// The whole page in a frame, with a fake cluster instead of the network.

import { FakeCluster, someone } from './fake-cluster.js';
import { eventually } from './harness.js';

/** The lobby of a room, with camera and microphone open. */
export async function openPage({ cleanup }, choices = {}) {
  localStorage.clear();
  localStorage.setItem('holdfast.choices', JSON.stringify(choices));
  const other = someone();
  const cluster = new FakeCluster(other.stream);
  const frame = document.createElement('iframe');
  Object.assign(frame, { width: 1000, height: 700, src: '/index.html?room=r&name=me#token=t' });
  cleanup(() => {
    frame.remove();
    other.stop();
    localStorage.clear();
  });
  document.body.append(frame);
  await new Promise((resolve) => frame.addEventListener('load', resolve, { once: true }));
  const { contentWindow: view, contentDocument: page } = frame;
  view.WebSocket = cluster.WebSocket;
  const $ = (selector) => page.querySelector(selector);
  await eventually(() => !$('#preview').hidden, 'the lobby');
  return { cluster, view, page, $, notices: () => [...page.querySelectorAll('#notices .notice')].map(({ firstElementChild }) => firstElementChild.textContent) };
}

/** A call of that page. */
export async function enter({ $ }) {
  $('#enter').click();
  await eventually(() => !$('#stage').hidden, 'in the call');
}
