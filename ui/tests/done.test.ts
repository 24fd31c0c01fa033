import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { DONE_MAX, type Done, keepDone, loadDone } from "../src/owner/done.js";

const kept = new Map<string, string>();
beforeEach(() => {
  kept.clear();
  vi.stubGlobal("localStorage", {
    getItem: (key: string) => kept.get(key) ?? null,
    setItem: (key: string, value: string) => void kept.set(key, value),
    removeItem: (key: string) => void kept.delete(key),
  });
});
afterEach(() => vi.unstubAllGlobals());

const done = (seq: number): Done => ({
  id: String(seq),
  text: "hm",
  did: "hide",
  place: { partition: 1, incarnation: 2, epoch: 3, seq },
});

it("keeps what was done to a video, and the newest of it", () => {
  const all = Array.from({ length: DONE_MAX + 2 }, (_, n) => done(n));
  keepDone("v", all);
  expect(loadDone("v")).toEqual(all.slice(2));
  expect(loadDone("w")).toEqual([]);
  keepDone("v", []);
  expect(kept.size).toBe(0);
});

it("takes nothing that it did not keep", () => {
  kept.set("tideline-done-v", "{");
  expect(loadDone("v")).toEqual([]);
  kept.set("tideline-done-v", JSON.stringify([null, { ...done(1), did: "erase" }, done(2)]));
  expect(loadDone("v")).toEqual([done(2)]);
});

it("holds for the page where storage is refused", () => {
  vi.stubGlobal("localStorage", undefined);
  keepDone("v", [done(1)]);
  expect(loadDone("v")).toEqual([]);
});
