// Rows under the days they are of.
//
// Rows and days come newest first under the same filter, and the server counts
// a day in its own time zone: so the first rows are those of the first day, as
// many as it counts. No time zone is needed here.

import type { Day, Row } from "@tideline/web";

/** A day with those of its rows that are there. */
export interface Shown {
  day: string;
  /** All of the day, also those that are not loaded. */
  count: number;
  rows: Row[];
}

export function byDay(days: readonly Day[], rows: readonly Row[]): Shown[] {
  const shown: Shown[] = [];
  let at = 0;
  for (const { day, count } of days) {
    if (at >= rows.length) break;
    shown.push({ day, count, rows: rows.slice(at, at + count) });
    at += count;
  }
  // Rows came in between the two answers: they are under the last day until the next load.
  const last = shown.at(-1);
  if (last && at < rows.length) last.rows.push(...rows.slice(at));
  return shown;
}

/** The days without a row that was removed. */
export function without(shown: readonly Shown[], gone: Row): Day[] {
  return shown
    .map(({ day, count, rows }) => ({ day, count: rows.includes(gone) ? count - 1 : count }))
    .filter(({ count }) => count > 0);
}

/** What a row is called, also without a catalogue. */
export function titleOf(row: Row): string {
  return row.title ?? row.id;
}

/** The address where a row goes on, if there is one. */
export function resumeOf(row: Row): string | undefined {
  const url = row.url;
  if (url === undefined)
    return row.kind === "video" ? `#/video/${encodeURIComponent(row.id)}` : undefined;
  // The catalogue is somebody's input: only addresses of pages.
  return /^(https?:\/\/|[/#])/i.test(url) ? url : undefined;
}
