// Tideline behind DPlayer: give `apiBackend` and `danmaku` to its constructor,
// then `attach` it.
//
//   const tideline = dplayer(client, "video-1");
//   const dp = new DPlayer({ container, video, ...tideline.options });
//   tideline.attach(dp);
//
// DPlayer works without this as well, with `danmaku: { id, api: "/players/dplayer/" }`;
// then comments of others appear at the next load. It writes texts into the
// page as HTML, so they are escaped here.

import type { Client } from "./client.js";
import type { Comment, Mode } from "./danmaku.js";
import { Viewer } from "./viewer.js";

/** A comment in DPlayer's own list. */
export interface Dan {
  id?: string;
  time: number;
  type: number | string;
  color: string | number;
  author: string;
  text: string;
}

/** What is used of a DPlayer. */
export interface DPlayerLike {
  video: { currentTime: number };
  danmaku: { dan: Dan[]; danIndex: number; draw(dan: Dan): void };
  on(event: string, ear: () => void): void;
}

interface Read {
  success: (dans: Dan[]) => void;
  error: (why?: string) => void;
}

interface Send {
  /** DPlayer draws a copy of it, and puts this very object into its list. */
  data: { text: string; color: number | string; type: number | string; time: number };
  success: () => void;
  error: (why?: string) => void;
}

/** A comment that comes so late is drawn at once; later, it had its time. In seconds. */
const LATE_S = 5;
const MODES: Mode[] = ["scroll", "top", "bottom"];

/** The connector for one player. */
export function dplayer(client: Client, video: string, viewer = new Viewer(client, video)) {
  let player: DPlayerLike | undefined;
  const apiBackend = {
    read({ success, error }: Read): void {
      viewer.open().then(
        (comments) => success(comments.filter(fits).map(danOf)),
        (problem) => error(problem.message),
      );
    },
    send({ data, success, error }: Send): void {
      const draft = {
        text: data.text,
        progress_ms: Math.round(data.time * 1000),
        mode: MODES[Number(data.type)] ?? "scroll",
        color: colorOf(data.color),
      };
      // What is drawn again, after a seek, is drawn as HTML.
      queueMicrotask(() => {
        data.text = escaped(data.text);
      });
      viewer.post(draft).then(
        (posted) => {
          (data as Partial<Dan>).id = posted.id;
          success();
        },
        (problem) => {
          // Nobody else will see it either.
          if (player) remove(player, (dan) => dan === data);
          error(problem.message);
        },
      );
    },
  };
  return {
    viewer,
    options: { apiBackend, danmaku: { id: video, api: "/players/dplayer/" } },
    /** Comments of others appear as they come. */
    attach(dp: DPlayerLike): void {
      player = dp;
      viewer.listen(({ shown, gone, own }) => {
        for (const id of gone) remove(dp, (dan) => dan.id === id);
        if (!own) for (const comment of shown.filter(fits)) add(dp, danOf(comment));
      });
      dp.on("destroy", () => viewer.close());
    },
  };
}

/** Puts a comment where its time is; one whose time has just been is drawn. */
function add({ video, danmaku }: DPlayerLike, dan: Dan): void {
  const { dan: list, danIndex } = danmaku;
  const late = video.currentTime - dan.time;
  if (late >= 0) {
    list.splice(danIndex, 0, dan);
    danmaku.danIndex++;
    if (late <= LATE_S) danmaku.draw(dan);
    return;
  }
  let at = danIndex;
  while (at < list.length && list[at]!.time <= dan.time) at++;
  list.splice(at, 0, dan);
}

function remove({ danmaku }: DPlayerLike, which: (dan: object & Partial<Dan>) => boolean): void {
  const at = danmaku.dan.findIndex(which);
  if (at < 0) return;
  danmaku.dan.splice(at, 1);
  if (at < danmaku.danIndex) danmaku.danIndex--;
}

/** It knows three ways to move; the rest would show its code. */
function fits({ mode }: Comment): boolean {
  return mode === "scroll" || mode === "reverse" || mode === "top" || mode === "bottom";
}

function danOf({ id, progress_ms, mode, color, sender, text }: Comment): Dan {
  const type = Math.max(0, MODES.indexOf(mode));
  // Its own default is white, also for black as a number.
  return { id, time: progress_ms / 1000, type, color, author: sender, text: escaped(text) };
}

/** `#rrggbb`, of a number or a text. */
export function colorOf(color: number | string): string {
  if (typeof color === "number") return `#${(color & 0xffffff).toString(16).padStart(6, "0")}`;
  return /^#[0-9a-f]{6}$/i.test(color) ? color.toLowerCase() : "#ffffff";
}

const ESCAPES: Record<string, string> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#x27;",
  "/": "&#x2f;",
};

/** As DPlayer does with what is typed into it. */
export function escaped(text: string): string {
  return text.replace(/[&<>"'/]/g, (sign) => ESCAPES[sign]!);
}
