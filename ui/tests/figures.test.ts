import { expect, it } from "vitest";
import { lagsOf, recordsOf, sum } from "../src/console/figures.js";

it("reads how far each view is behind, and nothing else", () => {
  const lags = lagsOf(`# HELP tideline_view_lag_records Outcomes.
tideline_view_lag_records{view="history",partition="0"} 3
tideline_view_lag_records{view="history",partition="12"} 4
tideline_view_lag_records{view="danmaku",partition="0"} 5
tideline_history_lag_bytes 7
`);
  expect([...lags].map(([view, lag]) => [view, ...lag])).toEqual([
    ["history", [0, 3], [12, 4]],
    ["danmaku", [0, 5]],
  ]);
  expect(sum(lags.get("history")!.values())).toBe(7);
});

it("counts the records that a partition keeps", () => {
  const kept = (start: number, synced: number) =>
    recordsOf({ partition: 0, epoch: 1, start, synced });
  expect([kept(1, 0), kept(1, 9), kept(5, 9), kept(10, 9)]).toEqual([0, 9, 5, 0]);
});
