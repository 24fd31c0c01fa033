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
  /** Which life of the name. */
  incarnation: number;
  partitions: number;
  kind: "source" | "derived";
  /** Of a derived topic: what it is computed from. */
  source?: string;
  /** Of a derived topic that was declared: by what. */
  operator?: unknown;
  read_only: boolean;
  retention_ms: number | null;
  bounds: Bounds[];
}

/** Who follows a topic over a connection of the server. */
export interface Reader {
  partition: number;
  caller: string;
  since_ms: number;
  /** The last record it was handed. */
  covered: number;
  /** Records on disk beyond that. */
  behind: number;
  bytes: number;
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

/** Bytes that readers of each topic were given, out of the metrics. */
export function egressOf(metrics: string): Map<string, number> {
  const line = /^tideline_topic_egress_bytes_total\{topic="([^"]+)"\} (\d+)$/gm;
  return new Map([...metrics.matchAll(line)].map(([, topic, bytes]) => [topic!, Number(bytes)]));
}

export function recordsOf({ start, synced }: Bounds): number {
  return Math.max(0, synced - start + 1);
}

/** Of all partitions, the numbers that were given so far. */
export function headOf(topic: Topic): number {
  return sum(topic.bounds.map(({ synced }) => synced));
}

export function sum(numbers: Iterable<number>): number {
  let all = 0;
  for (const one of numbers) all += one;
  return all;
}
