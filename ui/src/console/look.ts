// Asks the server again and again for what a page shows.

import { useEffect, useState } from "preact/hooks";

/** Between two looks at the server, in ms. */
const LOOK_MS = 3000;

/** What the last look saw, and what went wrong with it. */
export interface Seen<T> {
  seen: T | null;
  problem: Error | null;
}

/** Looks once now and then every three seconds; another `look` begins anew. */
export function useLook<T>(look: () => Promise<T>): Seen<T> {
  const [{ seen, problem }, set] = useState<Seen<T>>({ seen: null, problem: null });
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let here = true;
    const again = async () => {
      try {
        const now = await look();
        if (here) set({ seen: now, problem: null });
      } catch (error) {
        if (here) set(({ seen }) => ({ seen, problem: error as Error }));
      }
      if (here) timer = setTimeout(() => void again(), LOOK_MS);
    };
    set({ seen: null, problem: null });
    void again();
    return () => {
      here = false;
      clearTimeout(timer);
    };
  }, [look]);
  return { seen, problem };
}
