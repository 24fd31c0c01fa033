// The demo's clip, which stands in for every video: its minute is stretched
// over the length that the history knows, so that places mean what they say.

import type { Media } from "@tideline/web";

export const CLIP = "./demo/tide.webm";
/** The video that the clip really is. */
export const CLIP_ID = "tide";

/** A media element whose seconds last `scale` times as long. */
export function stretched(media: HTMLVideoElement, scale: number): Media {
  return {
    get currentTime() {
      return media.currentTime * scale;
    },
    get duration() {
      return media.duration * scale;
    },
    get paused() {
      return media.paused;
    },
    get ended() {
      return media.ended;
    },
    addEventListener: media.addEventListener.bind(media),
    removeEventListener: media.removeEventListener.bind(media),
  } as Media;
}

/** By how much the clip is stretched to be `duration_ms` long. */
export function scaleOf(id: string, duration_ms: number | undefined, clipSeconds: number): number {
  if (id === CLIP_ID || !duration_ms || !(clipSeconds > 0)) return 1;
  return duration_ms / 1000 / clipSeconds;
}

/** Where to begin, in seconds of the clip; at the end one begins again. */
export function startOf(
  position_ms: number | undefined,
  scale: number,
  clipSeconds: number,
): number {
  const at = (position_ms ?? 0) / 1000 / scale;
  return at > clipSeconds - 1 ? 0 : at;
}
