// The newest records of a topic, as they come.

import type { Client } from "@tideline/web";
import type { Bounds } from "./figures.js";

/** A record, as `/v1/topics/{topic}/records` has it. */
export interface Rec {
  partition: number;
  incarnation: number;
  epoch: number;
  seq: number;
  time_ms: number;
  key?: string;
  key_base64?: string;
  value?: unknown;
  value_base64?: string;
  /** Of a derived topic: why there is no record of its own in this place. */
  skipped?: string;
}

/** Records that are shown, at most. */
export const RECORDS_MAX = 100;
/** Records of one partition that one look takes, at most. */
const LOOK_MAX = 50;

/** Where the next look goes on, by partition. */
export type Places = ReadonlyMap<number, string>;

/** What one look found. */
export interface Found {
  records: Rec[];
  places: Places;
}

/**
 * The records behind `places` of the partitions that have any. Of a partition
 * that is not in it the last few. A place that is gone is taken up at its newest.
 */
export async function newer(
  client: Client,
  topic: string,
  bounds: readonly Bounds[],
  life: number,
  places: Places,
): Promise<Found> {
  const next = new Map(places);
  const looks = bounds
    .filter(({ synced, partition }) => synced > 0 && seqOf(places.get(partition)) <= synced)
    .map(async ({ partition, epoch, start, synced }) => {
      const late = Math.max(start, synced - LOOK_MAX + 1);
      const from =
        seqOf(places.get(partition)) >= late ? places.get(partition)! : `${life}-${epoch}-${late}`;
      const query = { partition: String(partition), from, limit: String(LOOK_MAX) };
      const path = `/v1/topics/${encodeURIComponent(topic)}/records`;
      const text = await client.raw("GET", path, { query }).then((answer) => answer.text());
      const { records, to } = read(text);
      next.set(partition, to);
      return records;
    });
  const found = await Promise.allSettled(looks);
  const refused = found.find((look) => look.status === "rejected");
  const records = found.flatMap((look) => (look.status === "fulfilled" ? look.value : []));
  if (records.length === 0 && refused) throw refused.reason;
  records.sort((a, b) => a.time_ms - b.time_ms || a.partition - b.partition || a.seq - b.seq);
  return { records, places: next };
}

/** The lines of an answer: records, and where to go on. */
export function read(lines: string): { records: Rec[]; to: string } {
  const all = lines.trimEnd().split("\n");
  const { covered } = JSON.parse(all.pop() ?? "") as { covered: { to: string } };
  return { records: all.map((line) => JSON.parse(line) as Rec), to: covered.to };
}

/** The number in a position; 0 where there is none. */
function seqOf(position: string | undefined): number {
  return Number(position?.split("-").at(2) ?? 0);
}

/** What a record says, in one line. */
export function told({ value, value_base64, skipped }: Rec): string {
  if (skipped !== undefined) return `⚠ ${skipped}`;
  if (typeof value === "string") return value;
  return value === undefined ? (value_base64 ?? "") : JSON.stringify(value);
}
