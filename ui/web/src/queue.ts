// Marks that could not be sent, kept in the browser until they can.
//
// A mark keeps its `event_id` and `event_ms`, so sending it twice is one mark.
// At most `max` are kept; the oldest goes first. Where the browser refuses to
// keep anything, marks are kept until the page is closed.

import type { Mark } from "./history.js";

/** A mark that may be sent again. */
export type KeptMark = Mark & { event_id: string; event_ms: number };

/** A mark with its place in the queue. */
export interface Kept {
  key: number;
  mark: KeptMark;
}

/** Where marks wait. */
export interface Queue {
  /** Keeps a mark of a user: its place. */
  push(user: string, mark: KeptMark): Promise<number>;
  /** The first marks of a user, oldest first. */
  first(user: string, most: number): Promise<Kept[]>;
  /** They have arrived, or never will. */
  drop(keys: readonly number[]): Promise<void>;
}

/** Marks kept if nothing else is said: four hours of heartbeats. */
export const KEPT_MAX = 1000;
const STORE = "marks";

interface Line {
  user: string;
  mark: KeptMark;
}

/** Opens the queue of this browser. */
export async function openQueue(
  name = "tideline-marks",
  max = KEPT_MAX,
  factory: IDBFactory | undefined = globalThis.indexedDB,
): Promise<Queue> {
  if (!factory) return new MemoryQueue(max);
  try {
    const opening = factory.open(name, 1);
    opening.onupgradeneeded = () => {
      opening.result.createObjectStore(STORE, { autoIncrement: true }).createIndex("user", "user");
    };
    return new BrowserQueue(await done(opening), max);
  } catch {
    return new MemoryQueue(max);
  }
}

class BrowserQueue implements Queue {
  constructor(
    readonly database: IDBDatabase,
    readonly max: number,
  ) {
    // A later version of the page must be able to open it.
    database.onversionchange = () => database.close();
  }

  async push(user: string, mark: KeptMark): Promise<number> {
    const store = this.#store("readwrite");
    const key = (await done(store.add({ user, mark } satisfies Line))) as number;
    const over = (await done(store.count())) - this.max;
    if (over > 0) {
      const old = await done(store.getAllKeys(null, over));
      await Promise.all(old.map((key) => done(store.delete(key))));
    }
    return key;
  }

  async first(user: string, most: number): Promise<Kept[]> {
    const index = this.#store("readonly").index("user");
    const [keys, lines] = await Promise.all([
      done(index.getAllKeys(user, most)),
      done(index.getAll(user, most) as IDBRequest<Line[]>),
    ]);
    return lines.map(({ mark }, at) => ({ key: keys[at] as number, mark }));
  }

  async drop(keys: readonly number[]): Promise<void> {
    const store = this.#store("readwrite");
    await Promise.all(keys.map((key) => done(store.delete(key))));
  }

  #store(mode: IDBTransactionMode): IDBObjectStore {
    return this.database.transaction(STORE, mode).objectStore(STORE);
  }
}

/** The same without a browser's store. */
export class MemoryQueue implements Queue {
  #next = 1;
  readonly #lines = new Map<number, Line>();
  constructor(readonly max = KEPT_MAX) {}

  async push(user: string, mark: KeptMark): Promise<number> {
    this.#lines.set(this.#next, { user, mark });
    for (const key of this.#lines.keys()) {
      if (this.#lines.size <= this.max) break;
      this.#lines.delete(key);
    }
    return this.#next++;
  }

  async first(user: string, most: number): Promise<Kept[]> {
    const ours = [...this.#lines].filter(([, line]) => line.user === user).slice(0, most);
    return ours.map(([key, { mark }]) => ({ key, mark }));
  }

  async drop(keys: readonly number[]): Promise<void> {
    for (const key of keys) this.#lines.delete(key);
  }
}

function done<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((yes, no) => {
    request.onsuccess = () => yes(request.result);
    request.onerror = () => no(request.error);
  });
}
