// A rate over the last minutes: a line, the highest value, and the newest.

import { short } from "./samples.js";

const WIDTH = 300;
const HEIGHT = 72;

interface Props {
  label: string;
  unit: string;
  /** Oldest first. */
  rates: readonly number[];
}

export function Chart({ label, unit, rates }: Props) {
  const most = Math.max(1, ...rates);
  const step = WIDTH / Math.max(1, rates.length - 1);
  const point = (rate: number, at: number) =>
    `${(at * step).toFixed(1)},${(HEIGHT - (rate / most) * (HEIGHT - 4) - 2).toFixed(1)}`;
  const now = rates.at(-1) ?? 0;
  const told = `${short(now)} ${unit}`;
  return (
    <figure class="chart">
      <figcaption>
        <span>{label}</span>
        <output>{told}</output>
      </figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img">
        <title>{`${label}: ${told}`}</title>
        <polyline points={rates.map(point).join(" ")} />
      </svg>
      <p>{`≤ ${short(most)} ${unit}`}</p>
    </figure>
  );
}
