// What a viewer of one video has: the comments of the segments that were
// loaded, with what happened since.
//
// Bodies may lag behind what is pushed, and pushes may come before the body of
// their segment. So a push is kept beside its segment until a body says that
// it holds it; then it is dropped. A comment is there once, whichever way it
// came: from a body, by a push, or as the answer to one's own post. No sockets,
// no clock in here.

import type { Comment, Segment } from "./danmaku.js";

/** Something that happened to one comment. */
export interface Push {
  seq: number;
  segment: number;
  id: string;
  /** As it is now; absent = it is shown no more. */
  comment?: Comment;
}

/** What is new to a viewer. */
export interface News {
  shown: Comment[];
  changed: Comment[];
  gone: string[];
}

/** Pushes kept for one segment whose body has not come; the oldest goes first,
 * and the body that comes is newer than it. */
const WAITING_MAX = 2000;

interface Kept {
  /** What the body holds; -1 = no body yet. */
  seq: number;
  comments: Map<string, Comment>;
  /** Newer than the body, in order. */
  pushes: Push[];
}

export class Room {
  readonly #segments = new Map<number, Kept>();
  /** Everything after `#from` and up to `#seq` was pushed; -1 = nothing has come yet. */
  #from = -1;
  #seq = -1;

  /** From where the live connection has to go on: undefined before anything came. */
  get seq(): number | undefined {
    return this.#seq < 0 ? undefined : this.#seq;
  }

  /** Every comment that is shown, in the order of the video. */
  comments(): Comment[] {
    const all = [...this.#segments.values()].flatMap(({ comments }) => [...comments.values()]);
    return all.sort((a, b) => a.progress_ms - b.progress_ms || compareIds(a.id, b.id));
  }

  has(segment: number): boolean {
    return (this.#segments.get(segment)?.seq ?? -1) >= 0;
  }

  /**
   * A segment's body has come, for the first time or again. If it is older than
   * all pushes, `seq` falls to it, and the room has to be joined again.
   */
  load({ segment, items, seq }: Segment): News {
    const kept = this.#kept(segment);
    // An older body than the one there is: some cache was slow.
    if (seq < kept.seq) return none();
    const before = kept.comments;
    kept.comments = new Map(items.map((item) => [item.id, item]));
    kept.seq = seq;
    kept.pushes = kept.pushes.filter((push) => push.seq > seq);
    for (const push of kept.pushes) put(kept.comments, push);
    if (this.#from < 0 || seq < this.#from) this.#from = this.#seq = seq;
    return difference(before, kept.comments);
  }

  /**
   * A segment that was not there when the rest was loaded has its first comment:
   * true if this is the first word of it.
   */
  begin(segment: number): boolean {
    const kept = this.#kept(segment);
    if (kept.seq >= 0) return false;
    kept.seq = 0;
    return true;
  }

  /** Something came live, or as the answer to one's own post. */
  push(push: Push): News {
    const kept = this.#kept(push.segment);
    if (push.seq <= kept.seq) return none();
    if (kept.pushes.some(({ seq, id }) => seq === push.seq && id === push.id)) return none();
    // Two ways may bring two changes in the wrong order.
    if (kept.pushes.some(({ seq, id }) => id === push.id && seq > push.seq)) return none();
    kept.pushes.push(push);
    kept.pushes.sort((a, b) => a.seq - b.seq);
    if (kept.pushes.length > WAITING_MAX) kept.pushes.shift();
    if (kept.seq < 0) return none();
    const before = kept.comments.get(push.id);
    put(kept.comments, push);
    if (!push.comment) return { ...none(), gone: before ? [push.id] : [] };
    return before
      ? { ...none(), changed: same(before, push.comment) ? [] : [push.comment] }
      : { ...none(), shown: [push.comment] };
  }

  /** Everything up to here has been pushed. */
  covered(seq: number): void {
    this.#seq = Math.max(this.#seq, seq);
  }

  /** Pushes up to `seq` were left out: the segments whose bodies do not hold them. */
  missed(seq: number): number[] {
    this.#from = this.#seq = seq;
    const old = [...this.#segments].filter(([, { seq: held }]) => held >= 0 && held < seq);
    return old.map(([segment]) => segment);
  }

  #kept(segment: number): Kept {
    let kept = this.#segments.get(segment);
    if (!kept) {
      kept = { seq: -1, comments: new Map(), pushes: [] };
      this.#segments.set(segment, kept);
    }
    return kept;
  }
}

/** By number, without one: ids have up to nineteen digits. */
export function compareIds(a: string, b: string): number {
  return a.length - b.length || (a < b ? -1 : a > b ? 1 : 0);
}

function put(comments: Map<string, Comment>, { id, comment }: Push): void {
  if (comment) comments.set(id, comment);
  else comments.delete(id);
}

function difference(before: Map<string, Comment>, now: Map<string, Comment>): News {
  const news = none();
  for (const [id, comment] of now) {
    const was = before.get(id);
    if (!was) news.shown.push(comment);
    else if (!same(was, comment)) news.changed.push(comment);
  }
  for (const id of before.keys()) if (!now.has(id)) news.gone.push(id);
  return news;
}

function same(a: Comment, b: Comment): boolean {
  return a.likes === b.likes && a.attr === b.attr && a.pool === b.pool;
}

function none(): News {
  return { shown: [], changed: [], gone: [] };
}
