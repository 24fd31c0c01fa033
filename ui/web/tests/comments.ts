// Comments as tests need them.

import type { Comment } from "../src/danmaku.js";
import type { Push } from "../src/room.js";

export function comment(id: string, progress_ms = 0, more: Partial<Comment> = {}): Comment {
  return {
    id,
    progress_ms,
    mode: "scroll",
    size: 25,
    color: "#ffffff",
    sent_ms: 0,
    pool: "normal",
    sender: "a6216d9",
    weight: 0,
    attr: 0,
    likes: 0,
    text: `text ${id}`,
    ...more,
  };
}

export const shows = (seq: number, id: string, more: Partial<Comment> = {}): Push => ({
  seq,
  segment: 1,
  id,
  comment: comment(id, 0, more),
});

export const hides = (seq: number, id: string): Push => ({ seq, segment: 1, id });
