// What was seen of the topics lately, and how fast they grew between two looks.

/** What one look saw. */
export interface Sample {
  /** Of the browser's clock that only goes forward, in ms. */
  at: number;
  /** Of each topic, the records there were so far. */
  heads: ReadonlyMap<string, number>;
  /** Of each topic, the bytes its readers were given so far. */
  egress: ReadonlyMap<string, number>;
}

/** Looks that are kept: three minutes of them. */
export const SAMPLES_MAX = 61;

/** With one look more, and without the oldest if they are too many. */
export function added(samples: readonly Sample[], sample: Sample): readonly Sample[] {
  return [...samples, sample].slice(-SAMPLES_MAX);
}

/**
 * How much of `what` a topic had each second, between each look and the next.
 * A number that fell began anew: a topic was made again, or a server started.
 */
export function ratesOf(
  samples: readonly Sample[],
  topic: string,
  what: "heads" | "egress",
): number[] {
  return samples.slice(1).map((sample, at) => {
    const before = samples[at]!;
    const grew = (sample[what].get(topic) ?? 0) - (before[what].get(topic) ?? 0);
    const seconds = (sample.at - before.at) / 1000;
    return seconds > 0 ? Math.max(0, grew) / seconds : 0;
  });
}

/** A rate in as many digits as one reads at a glance. */
export function short(rate: number): string {
  for (const [unit, size] of [
    ["G", 1e9],
    ["M", 1e6],
    ["k", 1e3],
  ] as const) {
    if (rate >= size) return `${(rate / size).toPrecision(3)} ${unit}`;
  }
  return rate >= 100 || Number.isInteger(rate) ? String(Math.round(rate)) : rate.toPrecision(2);
}
