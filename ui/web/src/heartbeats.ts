// A player's marks on their way to the server.
//
// A mark that cannot be sent waits in the queue, and goes with `history:merge`
// when the server answers again: each with the `event_id` and `event_ms` it
// had, so a mark whose answer was lost is not a second one. What the server
// refuses for good is dropped. One call is under way at a time.

import { Problem } from "./client.js";
import type { History, Mark, Taken } from "./history.js";
import type { Live } from "./live.js";
import type { KeptMark, Queue } from "./queue.js";

/** Times, all in ms, and what a browser gives. */
export interface HeartbeatOptions {
  /** Between two marks of a player that plays. Default 15,000. */
  intervalMs?: number;
  /** The longest that a call may take. Default 10,000. */
  callMs?: number;
  /** The first wait after a failure; doubles up to `retryMaxMs`. Default 5,000. */
  retryMs?: number;
  /** Default 300,000. */
  retryMaxMs?: number;
  /** A new name for a mark. Default: `crypto.randomUUID`. */
  name?: () => string;
  /** Marks go by this connection while it is open. */
  live?: Pick<Live, "progress">;
}

/** What a media element says of itself; ArtPlayer and DPlayer have one as `video`. */
export type Media = Pick<
  HTMLMediaElement,
  "currentTime" | "duration" | "paused" | "ended" | "addEventListener" | "removeEventListener"
>;

/** Marks sent in one call of what waited. */
const MERGE_MAX = 200;

export class Heartbeats {
  readonly #options: Required<Omit<HeartbeatOptions, "live">>;
  readonly #live: HeartbeatOptions["live"];
  #sending = false;
  /** The end of the call that is under way. */
  #ended: Promise<void> = Promise.resolve();
  #flushing: Promise<number> | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #wait = 0;

  constructor(
    readonly history: History,
    readonly queue: Queue,
    { live, ...options }: HeartbeatOptions = {},
  ) {
    this.#live = live;
    this.#options = {
      intervalMs: 15_000,
      callMs: 10_000,
      retryMs: 5_000,
      retryMaxMs: 300_000,
      name: () => crypto.randomUUID(),
      ...options,
    };
  }

  /** Sends a mark of now, or keeps it. What the server said, if it was asked. */
  async beat(mark: Mark): Promise<Taken | undefined> {
    const kept = this.#dated(mark);
    if (this.#sending) {
      await this.queue.push(this.#user, kept);
      // Goes as soon as the call that is under way has ended.
      if (this.#wait === 0) this.#retry(0);
      return undefined;
    }
    let end = () => {};
    this.#sending = true;
    this.#ended = new Promise((done) => {
      end = done;
    });
    try {
      const taken = await this.#send(kept);
      // It answers: what waits may go as well.
      if (this.#wait > 0) this.#retry(0);
      return taken;
    } catch (error) {
      if (isFinal(error)) throw error;
      await this.queue.push(this.#user, kept);
      this.#retry();
      return undefined;
    } finally {
      this.#sending = false;
      end();
    }
  }

  async #send(mark: KeptMark): Promise<Taken> {
    const { callMs } = this.#options;
    const sent = this.#live?.progress([mark]);
    if (!sent) return this.history.record([mark], { signal: AbortSignal.timeout(callMs) });
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<never>((_, no) => {
      timer = setTimeout(() => no(new Problem("offline", "no answer in time", 0)), callMs);
    });
    return Promise.race([sent, late]).finally(() => clearTimeout(timer));
  }

  /** A last mark when the page is left; kept until it is known to have arrived. */
  leave(mark: Mark): void {
    const kept = this.#dated(mark);
    const key = this.queue.push(this.#user, kept);
    // Goes on without the page, as a beacon does, and carries headers.
    const sent = this.history.record([kept], { keepalive: true });
    Promise.all([key, sent]).then(
      ([key]) => this.queue.drop([key]),
      () => undefined,
    );
  }

  /** Sends what waits: how many marks are done with. */
  flush(): Promise<number> {
    this.#flushing ??= this.#flush().finally(() => {
      this.#flushing = undefined;
    });
    return this.#flushing;
  }

  async #flush(): Promise<number> {
    let sent = 0;
    await this.#ended;
    for (;;) {
      const kept = await this.queue.first(this.#user, MERGE_MAX);
      if (kept.length === 0) {
        this.#wait = 0;
        return sent;
      }
      try {
        await this.history.merge(kept.map(({ mark }) => mark));
      } catch (error) {
        if (!isFinal(error) || isStranger(error)) {
          this.#retry();
          return sent;
        }
        // Refused as a whole, and would be for ever.
      }
      await this.queue.drop(kept.map(({ key }) => key));
      sent += kept.length;
    }
  }

  /** Follows a media element until the function that comes back is called. */
  watch(media: Media, what: Mark): () => void {
    let timer: ReturnType<typeof setInterval> | undefined;
    // What was sent last, and what is known to have arrived.
    let last = -1;
    let told = -1;
    const mark = (): Mark | undefined => {
      const at = Math.round(media.currentTime * 1000);
      if (!Number.isFinite(at)) return undefined;
      const length = Math.round(media.duration * 1000);
      return {
        ...what,
        position_ms: at,
        ...(Number.isFinite(length) && length > 0 ? { duration_ms: length } : {}),
        ...(media.ended ? { finished: true } : {}),
      };
    };
    const beat = async () => {
      const now = mark();
      const at = now?.position_ms ?? last;
      if (!now || at === last) return;
      last = at;
      // A mark that is refused for good has nobody to tell.
      const taken = await this.beat(now).catch(() => ({}));
      if (taken) told = at;
    };
    const still = () => clearInterval(timer);
    const seeked = () => void beat();
    const play = () => {
      still();
      timer = setInterval(() => void beat(), this.#options.intervalMs);
    };
    const stop = () => {
      still();
      void beat();
    };
    const hide = () => {
      if (globalThis.document?.visibilityState === "visible") return;
      const now = mark();
      if (!now || now.position_ms === told) return;
      last = told = now.position_ms ?? -1;
      this.leave(now);
    };
    const online = () => this.#retry(0);
    const ears: [EventTarget | undefined, string, () => void][] = [
      [media as unknown as EventTarget, "play", play],
      [media as unknown as EventTarget, "pause", stop],
      [media as unknown as EventTarget, "ended", stop],
      [media as unknown as EventTarget, "seeked", seeked],
      [globalThis.document, "visibilitychange", hide],
      [globalThis.window, "pagehide", hide],
      [globalThis.window, "online", online],
    ];
    for (const [target, name, ear] of ears) target?.addEventListener(name, ear);
    if (!media.paused) play();
    this.#retry(0);
    return () => {
      for (const [target, name, ear] of ears) target?.removeEventListener(name, ear);
      stop();
    };
  }

  /** No more tries by itself; what waits, waits for the next visit. */
  close(): void {
    clearTimeout(this.#timer);
  }

  get #user(): string {
    return this.history.client.user;
  }

  #dated(mark: Mark): KeptMark {
    const event_ms = mark.event_ms ?? this.history.client.now();
    return { ...mark, event_ms, event_id: mark.event_id ?? this.#options.name() };
  }

  #retry(afterMs?: number): void {
    const { retryMs, retryMaxMs } = this.#options;
    if (afterMs === undefined) this.#wait = Math.min(this.#wait * 2 || retryMs, retryMaxMs);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.flush(), afterMs ?? this.#wait);
  }
}

/** Whether the server will say the same again. */
function isFinal(error: unknown): boolean {
  return error instanceof Problem && !error.isTransient;
}

/** Whether another token may do. */
function isStranger(error: unknown): boolean {
  return error instanceof Problem && (error.status === 401 || error.status === 403);
}
