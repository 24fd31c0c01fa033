// The player and its layer of comments: a chunk of its own, loaded when a video
// is opened.

import Artplayer from "artplayer";
import artplayerPluginDanmuku from "artplayer-plugin-danmuku";
import type { Language } from "../words.js";
import type { Connector } from "./view.js";

/** Makes a player in `container`. */
export function make(
  container: HTMLDivElement,
  url: string,
  language: Language,
  comments: Connector["options"] | undefined,
): Artplayer {
  const layer =
    comments &&
    artplayerPluginDanmuku({
      ...comments,
      emitter: false,
      speed: 6,
      // Of the height: the same number of lines on a telephone.
      fontSize: "6.5%",
    });
  return new Artplayer({
    container,
    url,
    lang: language === "zh" ? "zh-cn" : "en",
    theme: "#0b7285",
    volume: 0.5,
    fullscreen: true,
    setting: true,
    playbackRate: true,
    autoSize: false,
    mutex: true,
    plugins: layer ? [layer] : [],
  });
}
