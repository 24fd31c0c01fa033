// Comments across a video: calls, and the shapes they have.
//
// What one sees at a time of the video comes in segments of six minutes; what
// happens after they were loaded comes live, see `live.ts` and `room.ts`.

import { type Client, Problem } from "./client.js";

export type Mode = "scroll" | "bottom" | "top" | "reverse" | "positioned" | "script" | "bas";
export type Pool = "normal" | "subtitle" | "special";

/** A comment. Ids exceed what a number holds. */
export interface Comment {
  id: string;
  progress_ms: number;
  mode: Mode;
  size: number;
  /** `#rrggbb` */
  color: string;
  sent_ms: number;
  pool: Pool;
  /** A keyed hash, per video. */
  sender: string;
  weight: number;
  /** Bit 0 protected, 1 from live, 2 many likes. */
  attr: number;
  likes: number;
  text: string;
}

/** Bits of `attr`. */
export const ATTR = { protected: 1, live: 2, liked: 4 } as const;

/** A comment as it is posted. */
export interface Draft {
  text: string;
  progress_ms: number;
  mode?: Mode;
  size?: number;
  color?: string;
  pool?: Pool;
  /** One name for all tries of one comment. Default: a new one. */
  client_id?: string;
}

/** A comment that was posted. */
export type Posted = Comment & { seq: number };

/** A segment as loaded. */
export interface Segment {
  /** From 1. */
  segment: number;
  items: Comment[];
  /** It holds every change of its segment up to here. */
  seq: number;
}

/** Figures of a video. */
export interface View {
  segments: number;
  segment_ms: number;
  total: number;
  shown: number;
  limit: number;
  /** Null where nobody has said it. */
  duration_ms: number | null;
  /** `open` or `closed`. */
  state: string;
}

/** One's own comment, with what became of it. */
export type Own = Comment & { state: string; reason?: string };

/** A rule against comments; the list is what others exchange as well. */
export interface Rule {
  /** 0 keyword, 1 regular expression, 2 sender. */
  type: 0 | 1 | 2;
  filter: string;
  opened: boolean;
  id?: number;
}

/** What the owner or a moderator changes of a comment. */
export interface Change {
  rank?: "plain" | "recommended" | "protected";
  state?: "shown" | "hidden" | "blocked";
  pool?: "normal" | "subtitle";
}

/** Where topic `danmaku-audit` tells of something that was done. */
export interface Place {
  partition: number;
  incarnation: number;
  epoch: number;
  seq: number;
}

/** A comment that was changed; `audit` is null where it was so already. */
export type Changed = Own & { rank: string; audit: Place | null };

/** Flags of one viewer, 0 to 11: who wants to see less hides what is low. */
export interface Flags {
  /** Of comments that have none. */
  default: number;
  flags: Map<string, number>;
}

/** The head of the `.smart` form: a length of four bytes, then JSON; the segment follows. */
export function readFlags(bytes: Uint8Array): Flags {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const length = bytes.length < 4 ? -1 : view.getUint32(0);
  if (length < 0 || length > bytes.length - 4) throw new Problem("internal", "cut short", 0);
  const text = new TextDecoder().decode(bytes.subarray(4, 4 + length));
  // Ids are texts already, or digits that a number would not hold.
  const safe = text.replace(/\[\s*(\d+)\s*,/g, '["$1",');
  const head = JSON.parse(safe) as { default: number; flags: [string, number][] };
  return { default: head.default, flags: new Map(head.flags) };
}

/** One video's comments. */
export class Danmaku {
  constructor(
    readonly client: Client,
    readonly video: string,
  ) {}

  view(): Promise<View> {
    return this.client.json("GET", this.#path("/view"));
  }

  /** A segment, from 1; undefined outside of the video. */
  async segment(segment: number, fresh = false): Promise<Segment | undefined> {
    const path = this.#path(`/segments/${segment}.json`);
    try {
      const { body, headers } = await this.client.call<{ items: Comment[] }>("GET", path, {
        fresh,
      });
      return { segment, items: body.items, seq: Number(headers.get("x-tideline-seq") ?? 0) };
    } catch (error) {
      if (error instanceof Problem && error.status === 404) return undefined;
      throw error;
    }
  }

  /** What this viewer thinks of a segment's comments. */
  async flags(segment: number): Promise<Flags> {
    // Whose they are says the token, or where there is none, a name.
    const { user } = this.client;
    const query = { user: user === "me" ? undefined : user };
    const path = this.#path(`/segments/${segment}.smart`);
    const response = await this.client.raw("GET", path, { query });
    return readFlags(new Uint8Array(await response.arrayBuffer()));
  }

  /** All of it, bounded by the video's limit; `fresh`: as it is now, not as it was just held. */
  async all(fresh = false): Promise<Comment[]> {
    const path = this.#path(".json");
    return (await this.client.json<{ items: Comment[] }>("GET", path, { fresh })).items;
  }

  /** Posts a comment. Tried once more with the same name if the answer was lost. */
  async post(draft: Draft): Promise<Posted> {
    const body = { client_id: newName(), user: this.client.user, ...draft };
    const post = () => this.client.json<Posted>("POST", this.#path(), { body });
    return post().catch((error) => {
      if (error instanceof Problem && error.code === "offline") return post();
      throw error;
    });
  }

  /** Takes one's own comment back, within two minutes. */
  async recall(id: string): Promise<void> {
    await this.client.call("DELETE", this.#path(`/${encodeURIComponent(id)}`));
  }

  /** As the owner or a moderator. */
  change(id: string, change: Change): Promise<Changed> {
    return this.client.json("PATCH", this.#path(`/${encodeURIComponent(id)}`), { body: change });
  }

  /** Undoes a change by its place, where nobody has changed the comment since. */
  async undo(place: Place): Promise<void> {
    await this.client.call("POST", "/v1/danmaku/audit:undo", { body: place });
  }

  /**
   * What is hidden for another reason than room, by where in the video; at most so many. For the
   * owner and moderators.
   */
  async hidden(most = 5_000): Promise<Own[]> {
    const found: Own[] = [];
    let after: string | undefined;
    do {
      const query = { after, limit: Math.min(100, most - found.length) };
      const page = await this.client.json<{ items: Own[]; next: string | null }>(
        "GET",
        this.#path("/hidden"),
        { query },
      );
      found.push(...page.items);
      after = page.next ?? undefined;
    } while (after !== undefined && found.length < most);
    return found;
  }

  async like(id: string): Promise<void> {
    await this.client.call("POST", this.#path(`/${encodeURIComponent(id)}/like`));
  }

  async report(id: string, reason: number): Promise<void> {
    const path = this.#path(`/${encodeURIComponent(id)}/report`);
    await this.client.call("POST", path, { body: { reason } });
  }

  /** One's own comments of this video, newest first. */
  async own(): Promise<Own[]> {
    const path = this.client.ofUser("/danmaku");
    const query = { video: this.video };
    return (await this.client.json<{ items: Own[] }>("GET", path, { query })).items;
  }

  /** What one does not want to see. */
  filters(): Promise<Rule[]> {
    return this.client.json("GET", this.client.ofUser("/danmaku/filters"));
  }

  async setFilters(filters: readonly Rule[]): Promise<void> {
    await this.client.call("PUT", this.client.ofUser("/danmaku/filters"), { body: filters });
  }

  #path(rest = ""): string {
    return `/v1/videos/${encodeURIComponent(this.video)}/danmaku${rest}`;
  }
}

function newName(): string {
  return crypto.randomUUID();
}
