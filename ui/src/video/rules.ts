// Which comments a viewer wants to see: rules of their own, and a level.

import type { Comment, Flags, Rule } from "@tideline/web";

/** Hides nothing. */
export const EVERYTHING = 0;
/** The highest level there is. */
export const LEVEL_MAX = 11;

/** What a viewer chose for one video. */
export interface Taste {
  rules: readonly Rule[];
  /** Comments with a lower flag are hidden. */
  level: number;
  /** By segment; none = nothing is known, and nothing is hidden by level. */
  flags: ReadonlyMap<number, Flags>;
}

/** Whether a comment is shown. */
export function shower({ rules, level, flags }: Taste, segmentOf: (ms: number) => number) {
  const against = rules.filter(({ opened }) => opened).map(test);
  return (comment: Comment): boolean => {
    if (against.some((hits) => hits(comment))) return false;
    const known = flags.get(segmentOf(comment.progress_ms));
    if (!known || level === EVERYTHING) return true;
    return (known.flags.get(comment.id) ?? known.default) >= level;
  };
}

function test({ type, filter }: Rule): (comment: Comment) => boolean {
  if (filter === "") return () => false;
  if (type === 2) return ({ sender }) => sender === filter;
  if (type === 1) {
    try {
      const pattern = new RegExp(filter, "u");
      return ({ text }) => pattern.test(text);
    } catch {
      // Of another dialect: the server's list has it, this page passes over it.
      return () => false;
    }
  }
  const word = filter.toLowerCase();
  return ({ text }) => text.toLowerCase().includes(word);
}

/** How many comments there are in each of `parts` equal parts of the video. */
export function density(comments: readonly Comment[], length: number, parts: number): number[] {
  const counts = new Array<number>(parts).fill(0);
  for (const { progress_ms } of comments) {
    const at = Math.min(parts - 1, Math.floor((progress_ms / Math.max(length, 1)) * parts));
    counts[at]! += 1;
  }
  return counts;
}
