// What is computed from what: a box for each topic, a line from its source.

import { useShared } from "../context.js";
import type { Topic } from "./figures.js";
import { layersOf, type Placed } from "./layers.js";

const BOX = { width: 190, height: 34 };
const GAP = { x: 56, y: 12 };

const left = ({ column }: Placed) => column * (BOX.width + GAP.x);
const top = ({ row }: Placed) => row * (BOX.height + GAP.y);

/** Characters of a name that fit into its box. */
const NAME_MAX = 24;

export function Graph({ topics }: { topics: readonly Topic[] }) {
  const { words } = useShared();
  const placed = layersOf(topics);
  const width = Math.max(0, ...placed.map(left)) + BOX.width;
  const height = Math.max(0, ...placed.map(top)) + BOX.height;
  return (
    <div class="graph">
      {/* Links in it are links of the page: a group, not one picture. */}
      <svg
        width={width + 2}
        height={height + 2}
        viewBox={`-1 -1 ${width + 2} ${height + 2}`}
        aria-label={words.derivation}
      >
        {placed.map(
          (one) => one.source && <Line key={one.topic.name} to={one} from={one.source} />,
        )}
        {placed.map((one) => (
          <a key={one.topic.name} href={topicPage(one.topic.name)} data-node={one.topic.name}>
            <title>{one.topic.name}</title>
            <rect x={left(one)} y={top(one)} {...BOX} rx="8" />
            <text x={left(one) + BOX.width / 2} y={top(one) + BOX.height / 2}>
              {one.topic.name.length > NAME_MAX
                ? `${one.topic.name.slice(0, NAME_MAX - 1)}…`
                : one.topic.name}
            </text>
          </a>
        ))}
      </svg>
    </div>
  );
}

function Line({ from, to }: { from: Placed; to: Placed }) {
  const x = left(from) + BOX.width;
  const y = top(from) + BOX.height / 2;
  const end = top(to) + BOX.height / 2;
  const bend = x + GAP.x / 2;
  return <path d={`M${x} ${y} C${bend} ${y} ${bend} ${end} ${left(to)} ${end}`} />;
}

/** The page of a topic. */
export function topicPage(name: string): string {
  return `#/console/topics/${encodeURIComponent(name)}`;
}
