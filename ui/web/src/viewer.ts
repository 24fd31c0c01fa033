// One viewer of one video: loads its comments, hears of new ones, sends.
//
// Whoever listens is told of every comment once, those that were posted here
// among them (`own`), whether the answer or the push was first.

import type { Client } from "./client.js";
import {
  type Comment,
  Danmaku,
  type Draft,
  type Posted,
  type Segment,
  type View,
} from "./danmaku.js";
import { Live } from "./live.js";
import { type News, type Push, Room } from "./room.js";

/** What a listener is told. */
export interface Told extends News {
  /** It was posted by this viewer: whoever drew it as it was sent does not draw it again. */
  own: boolean;
}

export type Listener = (news: Told) => void;

/** How long to wait before bodies are loaded again that were too old, in ms. */
const RELOAD_MS = 1000;
/** Until the server says it. */
const SEGMENT_MS = 360_000;

export class Viewer {
  readonly danmaku: Danmaku;
  readonly room = new Room();
  readonly #listeners = new Set<Listener>();
  readonly #live: Live;
  #leave: (() => void) | undefined;
  #view: View | undefined;
  /** Posts under way; pushes wait for their answers. */
  #posting = 0;
  #waiting: Push[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** How many watch, where the server says it. */
  viewers: number | undefined;

  constructor(client: Client, video: string, live: Live = new Live(client)) {
    this.danmaku = new Danmaku(client, video);
    this.#live = live;
  }

  /** Loads every segment, joins, and gives what there is; of that, listeners are not told. */
  async open(): Promise<Comment[]> {
    this.#view = await this.danmaku.view();
    const segments = Array.from({ length: this.#view.segments }, (_, at) => at + 1);
    for (const segment of await this.#bodies(segments)) this.room.load(segment);
    this.#leave ??= this.#live.join(this.danmaku.video, {
      seq: () => this.room.seq,
      push: (push) => this.#hear(push),
      covered: (seq) => this.room.covered(seq),
      lagged: (seq) => this.#lagged(seq),
      viewers: (n) => {
        this.viewers = n;
        this.#tell(nothing(), false);
      },
    });
    return this.room.comments();
  }

  get view(): View | undefined {
    return this.#view;
  }

  /** Tells `listener` from now on, until the function that comes back is called. */
  listen(listener: Listener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Posts a comment; listeners are told of it as their own. */
  async post(draft: Draft): Promise<Posted> {
    this.#posting++;
    try {
      const posted = await this.danmaku.post(draft);
      const { seq, ...comment } = posted;
      const segment = this.segmentOf(comment.progress_ms);
      this.#take({ seq, segment, id: comment.id, comment }, true);
      return posted;
    } finally {
      this.#posting--;
      if (this.#posting === 0) for (const push of this.#waiting.splice(0)) this.#hear(push);
    }
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#leave?.();
    this.#leave = undefined;
    this.#listeners.clear();
  }

  /** The segment of a time, from 1. */
  segmentOf(ms: number): number {
    return Math.floor(ms / (this.#view?.segment_ms ?? SEGMENT_MS)) + 1;
  }

  #hear(push: Push): void {
    if (this.#posting > 0) this.#waiting.push(push);
    else this.#take(push, false);
  }

  #take(push: Push, own: boolean): void {
    const { segment } = push;
    const isNew = this.room.begin(segment);
    this.#tell(this.room.push(push), own);
    // Of a video that grows: it may hold more than was pushed.
    if (isNew) void this.#reload([segment]).catch(() => undefined);
  }

  async #reload(segments: readonly number[]): Promise<void> {
    const before = this.room.seq;
    for (const segment of await this.#bodies(segments, true))
      this.#tell(this.room.load(segment), false);
    // A body older than the pushes: what lies between is asked for.
    const now = this.room.seq;
    if (before !== undefined && now !== undefined && now < before) {
      this.#live.rejoin(this.danmaku.video);
    }
  }

  async #bodies(segments: readonly number[], fresh = false): Promise<Segment[]> {
    const bodies = await Promise.all(segments.map((n) => this.danmaku.segment(n, fresh)));
    return bodies.filter((body) => body !== undefined);
  }

  #lagged(seq: number): void {
    const old = this.room.missed(seq);
    clearTimeout(this.#timer);
    // Bodies follow the log within a moment.
    const reload = () =>
      void this.#reload(old).catch(() => {
        this.#timer = setTimeout(reload, 10 * RELOAD_MS);
      });
    this.#timer = setTimeout(reload, RELOAD_MS);
  }

  #tell(news: News, own: boolean): void {
    for (const listener of this.#listeners) listener({ ...news, own });
  }
}

function nothing(): News {
  return { shown: [], changed: [], gone: [] };
}
