import type { Row } from "@tideline/web";
import { describe, expect, it } from "vitest";
import { clearOf } from "../src/history/clear.js";
import { byDay, resumeOf, without } from "../src/history/days.js";
import { dayName, LANGUAGES, place, preferred } from "../src/words.js";

const row = (id: string, more: Partial<Row> = {}): Row => ({
  kind: "video",
  id,
  percent: null,
  event_ms: 0,
  finished: false,
  plays: 0,
  ...more,
});

describe("rows under their days", () => {
  const rows = ["a", "b", "c", "d"].map((id) => row(id));
  const days = [
    { day: "2026-11-30", count: 1 },
    { day: "2026-11-29", count: 2 },
    { day: "2026-11-02", count: 9 },
  ];

  it("puts as many rows under a day as the server counts", () => {
    const shown = byDay(days, rows);
    expect(shown.map(({ rows }) => rows.map(({ id }) => id).join(""))).toEqual(["a", "bc", "d"]);
    expect(shown[2]?.count).toBe(9);
  });

  it("shows no day of which nothing is loaded, and loses no row", () => {
    expect(byDay(days, rows.slice(0, 1))).toHaveLength(1);
    expect(byDay([{ day: "2026-11-30", count: 1 }], rows)[0]?.rows).toHaveLength(4);
    expect(byDay([], rows)).toEqual([]);
  });

  it("takes a removed row off its day, and a day off with its last row", () => {
    const shown = byDay(days, rows);
    expect(without(shown, rows[1]!)).toEqual([days[0], { day: "2026-11-29", count: 1 }, days[2]]);
    expect(without(shown, rows[0]!)).toEqual([days[1], days[2]]);
  });
});

describe("where a row goes on", () => {
  it("is the catalogue's page, else the demo player for a video", () => {
    expect(resumeOf(row("a/b"))).toBe("#/video/a%2Fb");
    expect(resumeOf(row("a", { kind: "article" }))).toBeUndefined();
    expect(resumeOf(row("a", { url: "https://x.example/1" }))).toBe("https://x.example/1");
    expect(resumeOf(row("a", { url: "/watch/1" }))).toBe("/watch/1");
  });

  it("is never a script that somebody wrote into the catalogue", () => {
    for (const url of [
      "javascript:alert(1)",
      " javascript:alert(1)",
      "JaVaScRiPt:x",
      "data:text/html,x",
    ])
      expect(resumeOf(row("a", { url }))).toBeUndefined();
  });
});

describe("words", () => {
  it("says a place in a video as players do", () => {
    expect([0, 61_500, 1_620_000, 3_665_999].map(place)).toEqual([
      "0:00",
      "1:01",
      "27:00",
      "1:01:05",
    ]);
  });

  it("names days as people do", () => {
    const now = new Date(2026, 10, 30, 9);
    expect(dayName("2026-11-30", now, "en")).toBe("Today");
    expect(dayName("2026-11-29", now, "zh")).toBe("昨天");
    expect(dayName("2026-11-28", now, "en")).toBe("Saturday 28 November");
    expect(dayName("2025-12-31", now, "zh")).toContain("2025年12月31日");
  });

  it("says everything in each language", () => {
    const shape = (words: object): unknown =>
      Object.entries(words).map(([key, value]) => [
        key,
        typeof value === "object" ? shape(value) : typeof value,
      ]);
    expect(shape(LANGUAGES.zh)).toEqual(shape(LANGUAGES.en));
    expect(preferred(["zh-TW", "en"])).toBe("zh");
    expect(preferred([])).toBe("en");
  });
});

it("clears by the filter that was chosen, and never more", () => {
  expect(clearOf("finished", "", 0)).toEqual({ finished: true });
  expect(clearOf("kind", "video", 0)).toEqual({ kind: "video" });
  expect(clearOf("old", "video", 31 * 86_400_000)).toEqual({ before_ms: 86_400_000 });
  expect(clearOf("all", "video", 0)).toEqual({ all: true });
});
