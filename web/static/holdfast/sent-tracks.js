// The tracks that this client sends, kept so that every later connection sends them too.

/** @typedef {import('./protocol.js').Source} Source */
/** @typedef {import('./transport.js').Transport} Transport */

export class SentTracks {
  /** @type {Map<Source, MediaStreamTrack | null>} */
  #tracks = new Map();

  /**
   * @param {Source} source
   * @param {MediaStreamTrack | null} track
   */
  set(source, track) {
    this.#tracks.set(source, track);
  }

  /**
   * Whether no source of the list has a track that gives media: each track is missing, muted or ended. False for an empty list.
   * @param {(Source | undefined)[]} sources
   */
  giveNothing(sources) {
    const tracks = sources.map((source) => source && this.#tracks.get(source));
    return tracks.length > 0 && tracks.every((track) => !track || track.muted || track.readyState === 'ended');
  }

  /** @param {Transport | null} transport */
  silence(transport) {
    for (const source of this.#tracks.keys()) transport?.setTrack(source, null);
  }

  /** @param {Transport} transport */
  carry(transport) {
    for (const [source, track] of this.#tracks) transport.setTrack(source, track);
  }

  /**
   * Gives the connection those tracks again that a called-off attempt took from it. It leaves the other senders alone, because a browser makes
   * no offer before every replaced track is in place.
   * @param {Transport} transport
   */
  restore(transport) {
    for (const [source, track] of this.#tracks) {
      if (!transport.sends(source, track)) transport.setTrack(source, track);
    }
  }
}
