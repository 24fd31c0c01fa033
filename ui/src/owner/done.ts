// What was done to a video's comments and can be undone: kept in the browser, so
// that it can be on a later visit, too. The server undoes it by its place.

import type { Place } from "@tideline/web";

export type Deed = "protect" | "unprotect" | "hide" | "restore";

/** Something that was done. */
export interface Done {
  /** The comment. */
  id: string;
  text: string;
  did: Deed;
  /** Why it was hidden before, if it was. */
  reason?: string;
  place: Place;
}

/** Older ones are forgotten. */
export const DONE_MAX = 50;

const key = (video: string) => `tideline-done-${video}`;

/** The oldest first. */
export function loadDone(video: string): Done[] {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(key(video)) ?? "[]");
    return Array.isArray(kept) ? kept.filter(isDone) : [];
  } catch {
    return [];
  }
}

/** Keeps the newest of these. Storage may be refused: then they hold for the page. */
export function keepDone(video: string, done: readonly Done[]): void {
  try {
    if (done.length === 0) localStorage.removeItem(key(video));
    else localStorage.setItem(key(video), JSON.stringify(done.slice(-DONE_MAX)));
  } catch {}
}

const DEEDS: readonly unknown[] = ["protect", "unprotect", "hide", "restore"];

function isDone(one: Partial<Done> | null): one is Done {
  return (
    typeof one?.id === "string" &&
    typeof one.text === "string" &&
    DEEDS.includes(one.did) &&
    typeof one.place?.seq === "number"
  );
}
