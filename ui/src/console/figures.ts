// What the console shows, out of what the server says of its topics and of
// the views that are computed from them.

/** Where a partition begins and ends; empty where `synced` is below `start`. */
export interface Bounds {
  partition: number;
  epoch: number;
  /** The first record that is kept. */
  start: number;
  /** The last record that is on disk. */
  synced: number;
}

/** A topic, as `/v1/topics` has it. */
export interface Topic {
  name: string;
  partitions: number;
  kind: "source" | "derived";
  /** Of a derived topic: what it is computed from. */
  source?: string;
  read_only: boolean;
  retention_ms: number | null;
  bounds: Bounds[];
}

/** Records that a view has yet to apply, by partition. */
export type Lag = ReadonlyMap<number, number>;

/** The lag of each view, by its name, out of the metrics. */
export function lagsOf(metrics: string): Map<string, Lag> {
  const lags = new Map<string, Map<number, number>>();
  const line = /^tideline_view_lag_records\{view="([^"]+)",partition="(\d+)"\} (\d+)$/gm;
  for (const [, view, partition, records] of metrics.matchAll(line)) {
    const lag = lags.get(view!) ?? new Map<number, number>();
    lags.set(view!, lag.set(Number(partition), Number(records)));
  }
  return lags;
}

export function recordsOf({ start, synced }: Bounds): number {
  return Math.max(0, synced - start + 1);
}

export function sum(numbers: Iterable<number>): number {
  let all = 0;
  for (const one of numbers) all += one;
  return all;
}
