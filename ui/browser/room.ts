// One video's comments, on the server of a stage.

import type { Stage } from "./stage.js";

/** Texts that a careless page takes for more, or for something else. */
export const TRAPS = [
  "<img src=x onerror=\"window.broken='yes'\">",
  "<script>window.broken='yes'</script>",
  "&lt;b&gt; &amp; &#60;",
  "……&……",
  "<唯亿一张>",
  "#include<stdio.h>",
  '<![CDATA[<b>"it\'s"</b>]]>',
];

export interface Item {
  id: string;
  text: string;
  attr: number;
  mode: string;
  likes: number;
}

export class Room {
  #writers = 0;

  constructor(
    readonly stage: Stage,
    readonly video: string,
  ) {}

  /** A comment that somebody sends, elsewhere: each time somebody else. */
  add(text: string, progress_ms: number, more: object = {}): Promise<Item> {
    const user = `writer-${++this.#writers}`;
    return this.stage.json(`/v1/videos/${this.video}/danmaku`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ text, progress_ms, user, ...more }),
    });
  }

  /** Everything that is shown. */
  async all(): Promise<Item[]> {
    return (await this.stage.json<{ items: Item[] }>(`/v1/videos/${this.video}/danmaku.json`))
      .items;
  }
}
