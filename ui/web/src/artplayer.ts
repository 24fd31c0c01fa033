// Tideline behind ArtPlayer with artplayer-plugin-danmuku: give `options` to
// the plugin, then `attach` the player.
//
//   const tideline = artplayer(client, "video-1");
//   const art = new Artplayer({ container, url, plugins: [artplayerPluginDanmuku(tideline.options)] });
//   tideline.attach(art);
//
// The plugin writes texts as texts, so they go as they are.

import { type Client, Problem } from "./client.js";
import type { Comment, Mode } from "./danmaku.js";
import { Viewer } from "./viewer.js";

/** A comment in the plugin's queue. */
export interface Danmu {
  id?: string;
  text: string;
  mode?: 0 | 1 | 2;
  color?: string;
  time?: number;
  border?: boolean;
}

/** What is used of an ArtPlayer. */
export interface ArtplayerLike {
  currentTime: number;
  notice: { show: unknown };
  // biome-ignore lint/suspicious/noExplicitAny: plugins are anything
  plugins: any;
  // biome-ignore lint/suspicious/noExplicitAny: as ArtPlayer declares it
  on(event: any, ear: (...args: any[]) => void): unknown;
}

interface Options {
  /** Which comments are drawn; asked again each time one would be. Default: all. */
  shows?: (comment: Comment) => boolean;
}

const MODES: Mode[] = ["scroll", "top", "bottom"];
/** A comment whose time is less long ago is drawn at once, in seconds. */
const LATE_S = 5;
/** The plugin takes 0 for "now". */
const FIRST_S = 0.001;

/** The connector for one player. */
export function artplayer(
  client: Client,
  video: string,
  { shows = () => true }: Options = {},
  viewer = new Viewer(client, video),
) {
  const known = new Map<string, Comment>();
  let art: ArtplayerLike | undefined;
  const keep = (comment: Comment): Danmu => {
    known.set(comment.id, comment);
    return danmuOf(comment);
  };
  const options = {
    danmuku: async (): Promise<Danmu[]> => (await viewer.open()).filter(fits).map(keep),
    /** Called with what a viewer typed; what comes back says whether it is drawn. */
    beforeEmit: async (danmu: Danmu): Promise<boolean> => {
      try {
        const posted = await viewer.post(draftOf(danmu, art?.currentTime ?? 0));
        // The plugin draws this very object.
        danmu.id = posted.id;
        known.set(posted.id, posted);
        return true;
      } catch (problem) {
        if (art) art.notice.show = problem instanceof Problem ? problem.message : String(problem);
        return false;
      }
    },
    beforeVisible: (danmu: Danmu): boolean => {
      const comment = danmu.id === undefined ? undefined : known.get(danmu.id);
      return danmu.id === undefined || (comment !== undefined && shows(comment));
    },
  };
  return {
    viewer,
    options,
    /** Sends what was typed elsewhere on the page, and draws it. */
    async send(danmu: Danmu): Promise<void> {
      const posted = await viewer.post(draftOf(danmu, art?.currentTime ?? 0));
      const { time: _, ...drawn } = keep(posted);
      art?.plugins.artplayerPluginDanmuku.emit({ ...drawn, border: true });
    },
    /** Comments of others appear as they come. */
    attach(player: ArtplayerLike): void {
      art = player;
      viewer.listen(({ shown, changed, gone, own }) => {
        // Its queue cannot be cut: what is unknown here is drawn no more.
        for (const id of gone) known.delete(id);
        for (const comment of changed) if (known.has(comment.id)) known.set(comment.id, comment);
        if (own) return;
        for (const comment of shown.filter(fits)) {
          // Came with the first load as well.
          if (known.has(comment.id)) continue;
          const danmu = keep(comment);
          const late = player.currentTime - (danmu.time ?? 0);
          // Without a time it is drawn in half a second.
          if (late >= 0 && late <= LATE_S) delete danmu.time;
          player.plugins.artplayerPluginDanmuku.emit(danmu);
        }
      });
      player.on("destroy", () => viewer.close());
    },
  };
}

function draftOf({ text, mode, color, time }: Danmu, now: number) {
  return {
    text,
    progress_ms: Math.round((time ?? now) * 1000),
    mode: MODES[mode ?? 0] ?? "scroll",
    ...(color && /^#[0-9a-f]{6}$/i.test(color) ? { color: color.toLowerCase() } : {}),
  };
}

/** It knows three ways to move; the rest would show its code. */
function fits({ mode }: Comment): boolean {
  return mode === "scroll" || mode === "reverse" || mode === "top" || mode === "bottom";
}

function danmuOf({ id, text, mode, color, progress_ms }: Comment): Danmu {
  const moves = Math.max(0, MODES.indexOf(mode)) as 0 | 1 | 2;
  return { id, text, mode: moves, color, time: Math.max(progress_ms / 1000, FIRST_S) };
}
