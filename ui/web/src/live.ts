// The live connection: comments down, authenticated once.
//
// Joins rooms with the seq that is held, and joins again after a lost
// connection with what came since: no gap. Waits between tries grow from one
// second to thirty, spread so that viewers do not come back all at once.

import type { Client } from "./client.js";
import type { Comment } from "./danmaku.js";
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

export class Live {
  readonly #rooms = new Map<string, Ear>();
  readonly #options: Required<LiveOptions>;
  #socket: WebSocket | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #tries = 0;
  #opening = false;
  #closed = false;

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
      this.#again();
    };
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
  let frame: Record<string, unknown>;
  try {
    frame = JSON.parse(text);
  } catch {
    return undefined;
  }
  const { type, room, seq, viewers } = frame ?? {};
  if (typeof room !== "string") return undefined;
  const at = seq === undefined ? undefined : Number(seq);
  const count = typeof viewers === "number" ? { viewers } : {};
  if (type === "lagged") return { room, pushes: [], lagged: at ?? 0, ...count };
  if (type !== "danmaku") return { room, pushes: [], ...count };
  const items = Array.isArray(frame.items) ? frame.items : [];
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
