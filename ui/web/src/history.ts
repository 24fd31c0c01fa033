// A user's history: lists, resume points, deletes, the switch.

import type { Client } from "./client.js";

/** What a player sends. Only `kind` and `id` are needed. */
export interface Mark {
  kind: string;
  id: string;
  part?: string;
  position_ms?: number;
  duration_ms?: number;
  event_ms?: number;
  device?: string;
  group?: string;
  finished?: boolean;
  event_id?: string;
}

/** A row of a list. */
export interface Row {
  kind: string;
  id: string;
  part?: string;
  position_ms?: number;
  duration_ms?: number;
  /** 0 to 100, rounded down; null without a position or a duration. */
  percent: number | null;
  event_ms: number;
  device?: string;
  group?: string;
  finished: boolean;
  plays: number;
  title?: string;
  cover?: string;
  url?: string;
  work?: string;
}

/** Which rows. */
export interface Filter {
  kind?: readonly string[];
  /** Inclusive. */
  after_ms?: number;
  /** Exclusive. */
  before_ms?: number;
  unfinished?: boolean;
}

/** A page of a list. */
export interface Page {
  items: Row[];
  next_cursor: string | null;
  total?: number;
  /** Titles that did not come in time are left out. */
  partial?: boolean;
}

/** A day of the server's time zone, and how many rows it has. */
export interface Day {
  /** `2026-11-30` */
  day: string;
  count: number;
}

/** What became of marks; the counts add up to what was sent. */
export interface Taken {
  accepted: number;
  stale: number;
  paused: number;
  duplicate: number;
  over_cap: number;
  rejected: { index: number; code: string; detail: string }[];
  day_flag?: string;
}

/** Which rows a clear removes; at least one field, or `all`. */
export interface Clear {
  all?: true;
  kind?: string;
  before_ms?: number;
  after_ms?: number;
  finished?: true;
}

/** One user's history. */
export class History {
  constructor(readonly client: Client) {}

  /** Newest first. */
  list(
    filter: Filter & { limit?: number; cursor?: string; enrich?: boolean; group?: boolean } = {},
    signal?: AbortSignal,
  ): Promise<Page> {
    return this.client.json("GET", this.#path(), { query: { ...filter }, ...of(signal) });
  }

  /** Days with rows, newest first. */
  days(filter: Filter = {}, signal?: AbortSignal): Promise<Day[]> {
    return this.client.json("GET", this.#path("/days"), { query: { ...filter }, ...of(signal) });
  }

  /** The row of one object, or that there is none. */
  progress(kind: string, id: string): Promise<({ found: true } & Row) | { found: false }> {
    const query = { kind, id };
    return this.client.json("GET", this.client.ofUser("/progress"), { query });
  }

  /** Marks as they happen. */
  record(
    marks: readonly Mark[],
    how: { signal?: AbortSignal; keepalive?: boolean } = {},
  ): Promise<Taken> {
    return this.client.json("POST", this.#path(), {
      ...how,
      body: marks,
      // By this the server tells a wrong clock.
      headers: { "x-client-now-ms": String(this.client.now()) },
    });
  }

  /** Marks that were kept while there was no network. */
  merge(marks: readonly Mark[]): Promise<Taken> {
    return this.client.json("POST", this.#path(":merge"), {
      body: marks,
      headers: { "x-client-now-ms": String(this.client.now()) },
    });
  }

  /** Removes rows: how many there were. */
  async remove(keys: readonly { kind: string; id: string }[]): Promise<number> {
    const asked = { keys: keys.map(({ kind, id }) => ({ kind, id })) };
    const body = await this.client.json<{ deleted: number }>("POST", this.#path(":delete"), {
      body: asked,
    });
    return body.deleted;
  }

  /** Removes what a filter matches: how many there were. */
  async clear(what: Clear): Promise<number> {
    const query = { ...what };
    const path = this.#path();
    return (await this.client.json<{ deleted: number }>("DELETE", path, { query })).deleted;
  }

  /** Whether marks are recorded. */
  async recording(): Promise<boolean> {
    const path = this.#path("/settings");
    return (await this.client.json<{ recording: boolean }>("GET", path)).recording;
  }

  async setRecording(recording: boolean): Promise<void> {
    await this.client.call("PUT", this.#path("/settings"), { body: { recording } });
  }

  #path(rest = ""): string {
    return this.client.ofUser(`/history${rest}`);
  }
}

function of(signal: AbortSignal | undefined): { signal?: AbortSignal } {
  return signal ? { signal } : {};
}
