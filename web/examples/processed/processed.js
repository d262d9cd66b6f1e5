// The pictures of a camera, drawn anew by the application before they are sent: with a blur, another background, or a name.
//
//   const [camera] = stream.getVideoTracks();
//   await call.replaceTrack('camera', processed(camera, (context, picture, width, height) => {
//     context.filter = 'blur(12px)';
//     context.drawImage(picture, 0, 0, width, height);
//   }));

/**
 * Returns a track of what `draw` makes of each picture. It ends with the camera.
 * @param {MediaStreamTrack} camera
 * @param {(context: any, picture: any, width: number, height: number) => void} draw draws one picture on a 2D context of its size
 * @returns {MediaStreamTrack}
 */
export function processed(camera, draw) {
  return 'MediaStreamTrackProcessor' in globalThis && 'MediaStreamTrackGenerator' in globalThis ? byFrame(camera, draw) : byCanvas(camera, draw);
}

// Chromium gives each frame as it comes, also while the page is hidden. Heavy work belongs into a worker, where the streams can be sent to.
function byFrame(camera, draw) {
  const { MediaStreamTrackProcessor, MediaStreamTrackGenerator } = globalThis;
  const made = new MediaStreamTrackGenerator({ kind: 'video' });
  const canvas = new OffscreenCanvas(1, 1);
  const context = canvas.getContext('2d');
  const transform = (frame, controller) => {
    const { displayWidth, displayHeight, timestamp } = frame;
    if (canvas.width !== displayWidth || canvas.height !== displayHeight) [canvas.width, canvas.height] = [displayWidth, displayHeight];
    draw(context, frame, displayWidth, displayHeight);
    frame.close();
    controller.enqueue(new VideoFrame(canvas, { timestamp }));
  };
  const { readable } = new MediaStreamTrackProcessor({ track: camera });
  readable.pipeThrough(new TransformStream({ transform })).pipeTo(made.writable).catch(() => camera.stop()); // The track that was made was stopped.
  return made;
}

// Other browsers draw on a canvas, from a video element. They do so only while the page is shown: a hidden one sends its last picture.
function byCanvas(camera, draw) {
  const video = Object.assign(document.createElement('video'), { muted: true, playsInline: true, srcObject: new MediaStream([camera]) });
  const canvas = document.createElement('canvas');
  const context = canvas.getContext('2d');
  const [made] = canvas.captureStream().getVideoTracks();
  const next = () => {
    const { videoWidth, videoHeight } = video;
    if (canvas.width !== videoWidth || canvas.height !== videoHeight) [canvas.width, canvas.height] = [videoWidth, videoHeight];
    draw(context, video, videoWidth, videoHeight);
    if (made.readyState === 'live') video.requestVideoFrameCallback(next);
    else camera.stop();
  };
  camera.addEventListener('ended', () => made.stop());
  video.requestVideoFrameCallback(next);
  video.play();
  return made;
}
