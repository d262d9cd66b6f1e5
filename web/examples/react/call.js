// A call as a React component. It needs react and @holdfast-rtc/holdfast from your own node_modules or import map, and no build step.

import { createElement as h, useEffect, useRef, useState } from 'react';
import { attach, Call } from '@holdfast-rtc/holdfast';

/**
 * Joins a room for as long as it is mounted. Another `url` or `room` is another call; another `token` function or stream is taken at the next one.
 * @param {{url: string, room: string, token: () => Promise<string>, stream?: MediaStream, width?: number, height?: number}} props
 *   `width` and `height`: of each picture, in device pixels
 */
export function CallView({ url, room, token, stream, width = 640, height = 360 }) {
  const { call, state, roster, problem } = useCall({ url, room, token, stream });
  const others = roster.filter(({ peer }) => peer !== call?.peer);
  const view = JSON.stringify(others.map(({ peer }) => ({ peer, source: 'camera', width, height })));
  useEffect(() => call?.setView(JSON.parse(view)), [call, view]);
  return h('section', { 'data-state': state },
    h('p', { role: 'status' }, problem || state),
    others.map(({ peer, name, audioMuted }) => h('figure', { key: peer },
      h(Media, { kind: 'video', stream: call.stream(peer, 'camera') }),
      h(Media, { kind: 'audio', stream: call.stream(peer, 'microphone') }),
      h('figcaption', null, name, audioMuted ? ' (muted)' : ''))),
    h('button', { onClick: () => call?.setMuted('microphone', !call.isMuted('microphone')) }, 'Mute'));
}

/**
 * A call that begins when the component is mounted and is left when it is unmounted.
 * @param {{url: string, room: string, token: () => Promise<string>, stream?: MediaStream}} options
 */
export function useCall({ url, room, token, stream }) {
  const [now, setNow] = useState({ call: null, state: 'idle', roster: [], problem: '' });
  const latest = useRef({ token, stream });
  latest.current = { token, stream };
  useEffect(() => {
    const call = new Call();
    // A component that is unmounted, or mounted twice by StrictMode, hears no more of the call it left.
    const listening = new AbortController();
    const told = (change) => setNow((before) => ({ ...before, ...change }));
    const on = (type, hear) => call.addEventListener(type, ({ detail }) => told(hear(detail)), { signal: listening.signal });
    told({ call, state: 'joining', roster: [], problem: '' });
    on('state', ({ state }) => ({ state }));
    on('roster', ({ roster }) => ({ roster }));
    on('left', ({ message }) => ({ problem: message }));
    on('error', ({ message }) => ({ problem: message }));
    on('joined', () => ({ problem: '' }));
    // The token is the room's: `room` only says when another call begins.
    call.join({ url, token: () => latest.current.token(), stream: latest.current.stream }).catch((error) => listening.signal.aborted || told({ problem: error.message }));
    return () => {
      listening.abort();
      call.leave();
    };
  }, [url, room]);
  return now;
}

/** @param {{kind: 'audio' | 'video', stream: MediaStream}} props */
function Media({ kind, stream }) {
  const element = useRef(null);
  useEffect(() => attach(element.current, stream), [stream]);
  return h(kind, { ref: element, playsInline: true });
}
