// How many comments there are along the video: bars, one of which may be
// chosen. One stop for the Tab key; arrows go from bar to bar.

import { useRef, useState } from "preact/hooks";
import { useShared } from "../context.js";
import { place } from "../words.js";

interface Props {
  /** How many comments each equal part of the video has. */
  counts: readonly number[];
  /** Of the video, in ms. */
  length: number;
  /** Which part is chosen. */
  part: number | null;
  choose: (part: number | null) => void;
}

export function Density({ counts, length, part, choose }: Props) {
  const { words } = useShared();
  const bars = useRef<HTMLDivElement>(null);
  const [at, setAt] = useState(0);
  const most = Math.max(1, ...counts);
  const begin = (bar: number) => place((bar * length) / counts.length);

  const move = (event: KeyboardEvent) => {
    const last = counts.length - 1;
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: last }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    bars.current?.querySelectorAll("button")[Math.max(0, Math.min(last, to))]?.focus();
  };

  return (
    <figure class="along">
      {/* biome-ignore lint/a11y/useSemanticElements: a fieldset has no bars */}
      <div ref={bars} class="density" role="group" aria-label={words.density} onKeyDown={move}>
        {counts.map((count, bar) => (
          <button
            key={bar}
            type="button"
            tabIndex={bar === at ? 0 : -1}
            aria-pressed={part === bar}
            aria-label={`${begin(bar)}: ${words.entries(count)}`}
            title={`${begin(bar)}: ${words.entries(count)}`}
            onFocus={() => setAt(bar)}
            onClick={() => choose(part === bar ? null : bar)}
          >
            <span style={{ height: `${(100 * count) / most}%` }} />
          </button>
        ))}
      </div>
      <figcaption>
        <span>{place(0)}</span>
        {part !== null && (
          <button type="button" class="quiet" onClick={() => choose(null)}>
            {`${begin(part)}–${begin(part + 1)} ×`}
          </button>
        )}
        <span>{place(length)}</span>
      </figcaption>
    </figure>
  );
}
