// What a test needs of a screen with sound: `share` stands in for the capture, `listen` tells what is heard of a source.
globalThis.screenSound = {
  /** The browser's own capture of a screen, with a tone in its left channel. */
  share() {
    const capture = navigator.mediaDevices.getDisplayMedia.bind(navigator.mediaDevices);
    navigator.mediaDevices.getDisplayMedia = async (wish) => {
      screenSound.wish = wish;
      const [picture] = (await capture(wish)).getVideoTracks();
      const context = new AudioContext();
      const [tone, sides, sink] = [context.createOscillator(), context.createChannelMerger(2), context.createMediaStreamDestination()];
      tone.connect(sides, 0, 0);
      sides.connect(sink);
      tone.start();
      return new MediaStream([picture, ...sink.stream.getTracks()]);
    };
    return true;
  },
  /** Root mean squares of both channels over 0.7 s, and how many elements play somebody's source. */
  async listen(peer, source) {
    const stream = call.stream(peer, source);
    const elements = [...document.querySelectorAll('audio')].filter(({ srcObject, paused, muted }) => srcObject === stream && !paused && !muted).length;
    const slots = call.slots.filter((slot) => slot.peer === peer && slot.source === source).length;
    if (stream.getAudioTracks().length === 0) return { left: 0, right: 0, elements, slots };
    const context = new AudioContext();
    const [from, sides] = [context.createMediaStreamSource(stream), context.createChannelSplitter(2)];
    from.connect(sides);
    const ears = [0, 1].map((side) => {
      const ear = new AnalyserNode(context, { fftSize: 32768 });
      sides.connect(ear, side);
      return ear;
    });
    await new Promise((resolve) => setTimeout(resolve, 1000));
    const [left, right] = ears.map((ear) => {
      const wave = new Float32Array(ear.fftSize);
      ear.getFloatTimeDomainData(wave);
      return Math.sqrt(wave.reduce((sum, value) => sum + value * value, 0) / wave.length);
    });
    context.close();
    return { left, right, elements, slots };
  },
};
