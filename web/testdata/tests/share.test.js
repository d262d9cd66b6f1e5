// A screen that is shared, as its call is asked to send it.

import { OwnSources } from '/holdfast/own-sources.js';
import { Share } from '/page/share.js';
import { equal, ok, test } from './harness.js';

/** A call of which only the own sources are there, and a browser that shows this page's canvas as a screen. */
function sharing({ cleanup }) {
  const [said, sent] = [[], new Map()];
  const own = new OwnSources({ say: ({ source, muted }) => said.push([source, muted]), send: async (source, track) => void sent.set(source, track) });
  const call = Object.assign(new EventTarget(), {
    state: 'live',
    mayPublish: (source) => source === 'screen',
    isMuted: (source) => own.isMuted(source),
    setMuted: (source, muted) => own.setMuted(source, muted),
    replaceTrack: (source, track) => own.replace(source, track),
  });
  const tracks = [];
  navigator.mediaDevices.getDisplayMedia = async () => {
    const canvas = document.createElement('canvas');
    canvas.getContext('2d');
    const stream = canvas.captureStream(5);
    tracks.push(...stream.getTracks());
    return stream;
  };
  cleanup(() => {
    delete navigator.mediaDevices.getDisplayMedia;
    call.dispatchEvent(new CustomEvent('left'));
  });
  return { call, own, said, sent, tracks, share: new Share(/** @type {any} */ (call), () => {}) };
}

test('who shares a screen again after a host stopped the first one is seen', async (t) => {
  const { share, own, said, sent, tracks } = sharing(t);
  await share.toggle();
  ok(sent.get('screen') === tracks[0] && !own.isMuted('screen'), 'the first one');
  // What moderation does, and then the page.
  await own.setMuted('screen', true);
  await share.stop();
  equal([sent.get('screen'), tracks[0].readyState, share.stream], [null, 'ended', null]);
  await share.toggle();
  ok(sent.get('screen') === tracks[1] && tracks[1].readyState === 'live', 'the second one');
  equal([said.at(-1), own.isMuted('screen')], [['screen', false], false]);
});
