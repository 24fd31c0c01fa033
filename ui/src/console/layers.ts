// Where topics stand in the drawing of what is computed from what: each one
// column to the right of its source, and below what stands there already.

import type { Topic } from "./figures.js";

/** A topic in the drawing. */
export interface Placed {
  topic: Topic;
  column: number;
  row: number;
  /** Where its source stands. */
  source?: Placed;
}

/**
 * Places topics, sources first, each followed by what is computed from it; a
 * topic and what hangs on it take rows of their own. One whose source is not
 * there stands as a source does.
 */
export function layersOf(topics: readonly Topic[]): Placed[] {
  const names = new Set(topics.map(({ name }) => name));
  const below = new Map<string, Topic[]>();
  for (const topic of topics) {
    const above = topic.source && names.has(topic.source) ? topic.source : "";
    below.set(above, [...(below.get(above) ?? []), topic]);
  }
  const placed: Placed[] = [];
  let row = 0;
  const place = (topic: Topic, column: number, source?: Placed) => {
    const here: Placed = { topic, column, row, ...(source && { source }) };
    placed.push(here);
    const derived = below.get(topic.name) ?? [];
    for (const next of derived) place(next, column + 1, here);
    if (derived.length === 0) row += 1;
  };
  for (const topic of below.get("") ?? []) place(topic, 0);
  return placed;
}
