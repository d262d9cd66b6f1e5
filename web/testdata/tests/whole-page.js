// The whole page in a frame, with a fake cluster instead of the network.

import { FakeCluster, someone } from './fake-cluster.js';
import { eventually } from './harness.js';

/** The lobby of a room, with camera and microphone open. `reload` loads it again, and gives what this does. */
export async function openPage({ cleanup }, choices = {}, { key = '' } = {}) {
  localStorage.clear();
  localStorage.setItem('holdfast.choices', JSON.stringify(choices));
  const other = someone();
  const cluster = new FakeCluster(other.stream);
  const frame = document.createElement('iframe');
  Object.assign(frame, { width: 1000, height: 700, src: `/index.html?room=r&name=me#token=t${key && `&key=${key}`}` });
  cleanup(() => {
    frame.remove();
    other.stop();
    localStorage.clear();
  });
  /** @param {() => void} begin */
  const load = async (begin) => {
    const loaded = new Promise((resolve) => frame.addEventListener('load', resolve, { once: true }));
    begin();
    await loaded;
    const { contentWindow: view, contentDocument: page } = frame;
    view.WebSocket = cluster.WebSocket;
    const $ = (selector) => page.querySelector(selector);
    await eventually(() => !$('#preview').hidden, 'the lobby');
    const notices = () => [...page.querySelectorAll('#notices .notice')].map(({ firstElementChild }) => firstElementChild.textContent);
    return { cluster, view, page, $, notices, reload: () => load(() => view.location.reload()) };
  };
  return load(() => document.body.append(frame));
}

/** A call of that page. */
export async function enter({ $ }) {
  $('#enter').click();
  await eventually(() => !$('#stage').hidden, 'in the call');
}

/** Out of the call, and into another room's by the lobby. */
export async function enterElsewhere(opened, room) {
  const { $ } = opened;
  $('#leave').click();
  await eventually(() => !$('#ended').hidden, 'left');
  $('#elsewhere').click();
  $('#room').value = room;
  await enter(opened);
}
