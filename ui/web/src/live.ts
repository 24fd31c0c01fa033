// The live connection: marks up and comments down, authenticated once.
//
// Joins rooms with the seq that is held, and joins again after a lost
// connection with what came since: no gap. Waits between tries grow from one
// second to thirty, spread so that viewers do not come back all at once.

import { type Client, Problem } from "./client.js";
import type { Comment } from "./danmaku.js";
import type { Mark, Taken } from "./history.js";
import type { Push } from "./room.js";

/** What a room tells whoever joined it. */
export interface Ear {
  /** Where to go on: what is held already, if anything. */
  seq: () => number | undefined;
  push: (push: Push) => void;
  /** Everything up to here was pushed. */
  covered?: (seq: number) => void;
  /** Pushes were left out: load again what is older than `seq`. */
  lagged: (seq: number) => void;
  viewers?: (n: number) => void;
}

export interface LiveOptions {
  /** Default: the browser's. */
  socket?: (address: string, protocol: string) => WebSocket;
  /** 0 to 1; default `Math.random`. */
  random?: () => number;
}

const PROTOCOL = "tideline.v1.json";
const WAIT_MS = 1000;
const WAIT_MAX_MS = 30_000;
/** Frames with marks that may wait for their answers at once; as many as the server takes. */
const UNDER_WAY_MAX = 16;

interface Waiting {
  yes: (taken: Taken) => void;
  no: (problem: Problem) => void;
}

export class Live {
  readonly #rooms = new Map<string, Ear>();
  readonly #options: Required<LiveOptions>;
  #socket: WebSocket | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #tries = 0;
  #opening = false;
  #closed = false;
  #id = 0;
  readonly #waiting = new Map<number, Waiting>();

  constructor(
    readonly client: Client,
    options: LiveOptions = {},
  ) {
    this.#options = {
      socket: (address, protocol) => new WebSocket(address, protocol),
      random: Math.random,
      ...options,
    };
  }

  /** Hears of a video until the function that comes back is called. */
  join(video: string, ear: Ear): () => void {
    const room = `video:${video}`;
    this.#rooms.set(room, ear);
    if (this.#isOpen) this.#sayJoin(room, ear);
    else void this.#open();
    return () => {
      if (this.#rooms.get(room) !== ear) return;
      this.#rooms.delete(room);
      if (this.#isOpen) this.#say({ type: "leave", room });
      if (this.#rooms.size === 0) this.close();
    };
  }

  /** Opens the connection for marks alone; it is opened again when it is lost. */
  connect(): void {
    void this.#open();
  }

  /** Sends marks this way, if it is open now and has room; else undefined. */
  progress(marks: readonly Mark[]): Promise<Taken> | undefined {
    if (!this.#isOpen || this.#waiting.size >= UNDER_WAY_MAX) return undefined;
    const id = ++this.#id;
    const { user, now } = this.client;
    const named = marks.map((mark) => ({ ...mark, user }));
    this.#say({ type: "progress", id, client_now_ms: now(), marks: named });
    return new Promise((yes, no) => this.#waiting.set(id, { yes, no }));
  }

  /** Joins again from where the ear says. */
  rejoin(video: string): void {
    const room = `video:${video}`;
    const ear = this.#rooms.get(room);
    if (ear && this.#isOpen) this.#sayJoin(room, ear);
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#socket?.close(1000);
    this.#socket = undefined;
    this.#lose();
  }

  get #isOpen(): boolean {
    return this.#socket?.readyState === 1;
  }

  async #open(): Promise<void> {
    if (this.#socket || this.#opening) return;
    this.#closed = false;
    this.#opening = true;
    try {
      // A ticket is good for one handshake.
      const address = await this.client.liveAddress();
      if (this.#closed) return;
      this.#listen(this.#options.socket(address, PROTOCOL));
    } catch {
      this.#again();
    } finally {
      this.#opening = false;
    }
  }

  #listen(socket: WebSocket): void {
    this.#socket = socket;
    socket.onopen = () => {
      for (const [room, ear] of this.#rooms) this.#sayJoin(room, ear);
    };
    socket.onmessage = ({ data }) => {
      if (this.#socket === socket && typeof data === "string") this.#hear(data);
    };
    socket.onclose = () => {
      if (this.#socket !== socket) return;
      this.#socket = undefined;
      this.#lose();
      this.#again();
    };
  }

  /** Nobody answers any more; the marks may have arrived all the same. */
  #lose(): void {
    for (const { no } of this.#waiting.values()) no(new Problem("offline", "connection lost", 0));
    this.#waiting.clear();
  }

  #again(): void {
    if (this.#closed) return;
    const wait = Math.min(WAIT_MS * 2 ** this.#tries++, WAIT_MAX_MS);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#open(), wait * (0.5 + this.#options.random() / 2));
  }

  #say(frame: object): void {
    this.#socket?.send(JSON.stringify(frame));
  }

  #sayJoin(room: string, ear: Ear): void {
    this.#say({ type: "join", room, from_seq: ear.seq() });
  }

  #hear(text: string): void {
    const answer = readAnswer(text);
    if (answer) {
      const waiting = this.#waiting.get(answer.id);
      this.#waiting.delete(answer.id);
      if (answer.problem) waiting?.no(answer.problem);
      else waiting?.yes(answer.taken);
      return;
    }
    const frame = read(text);
    const ear = frame && this.#rooms.get(frame.room);
    if (!frame || !ear) return;
    // It works: the next failure is a first one.
    this.#tries = 0;
    if (frame.lagged !== undefined) ear.lagged(frame.lagged);
    for (const push of frame.pushes) ear.push(push);
    if (frame.seq !== undefined) ear.covered?.(frame.seq);
    if (frame.viewers !== undefined) ear.viewers?.(frame.viewers);
  }
}

type Answer = { id: number; taken: Taken; problem?: never } | { id: number; problem: Problem };

/** The answer to a frame of marks; undefined for anything else. */
export function readAnswer(text: string): Answer | undefined {
  const frame = parse(text);
  const { type, id, ...rest } = frame ?? {};
  if (typeof id !== "number") return undefined;
  if (type === "ack") return { id, taken: rest as unknown as Taken };
  if (type !== "error") return undefined;
  const { code, detail, retry_after_ms } = rest;
  const wait = typeof retry_after_ms === "number" ? retry_after_ms : undefined;
  // Whoever may come back is told as over HTTP.
  const passing = ["rate_limited", "overloaded", "internal"].includes(String(code)) ? 503 : 400;
  return { id, problem: new Problem(String(code), String(detail), passing, wait) };
}

function parse(text: string): Record<string, unknown> | undefined {
  try {
    return JSON.parse(text) ?? undefined;
  } catch {
    return undefined;
  }
}

/** A frame about a room. */
interface Frame {
  room: string;
  seq?: number;
  pushes: Push[];
  lagged?: number;
  viewers?: number;
}

/** What a frame says of a room; undefined for what is not of one. */
export function read(text: string): Frame | undefined {
  const frame = parse(text);
  const { type, room, seq, viewers } = frame ?? {};
  if (typeof room !== "string") return undefined;
  const at = seq === undefined ? undefined : Number(seq);
  const count = typeof viewers === "number" ? { viewers } : {};
  if (type === "lagged") return { room, pushes: [], lagged: at ?? 0, ...count };
  if (type !== "danmaku") return { room, pushes: [], ...count };
  const items = Array.isArray(frame?.items) ? frame.items : [];
  const pushes = items.map(readPush).filter((push) => push !== undefined);
  return { room, pushes, ...(at === undefined ? {} : { seq: at }), ...count };
}

/** `{"seq","segment","comment":{…}}`, or `{"seq","segment","gone":"id"}`. */
function readPush(item: unknown): Push | undefined {
  const { seq, segment, comment, gone } = (item ?? {}) as Record<string, unknown>;
  const place = { seq: Number(seq), segment: Number(segment) };
  if (!Number.isFinite(place.seq) || !Number.isFinite(place.segment)) return undefined;
  if (typeof gone === "string") return { ...place, id: gone };
  const shown = comment as Comment | undefined;
  return typeof shown?.id === "string" ? { ...place, id: shown.id, comment: shown } : undefined;
}
