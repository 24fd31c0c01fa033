import type { Comment, Rule } from "@tideline/web";
import { expect, it } from "vitest";
import { scaleOf, startOf } from "../src/video/clip.js";
import { density, shower } from "../src/video/rules.js";

const comment = (id: string, text: string, more: Partial<Comment> = {}) =>
  ({ id, text, sender: "ab", progress_ms: 0, ...more }) as Comment;
const hidden = (rules: Partial<Rule>[], one: Comment) => {
  const whole = rules.map((rule) => ({ type: 0, filter: "", opened: true, ...rule }) as Rule);
  return !shower({ rules: whole, level: 0, flags: new Map() }, () => 1)(one);
};

it("hides words, patterns and senders that a viewer does not want", () => {
  const one = comment("1", "No SPOILERS here");
  expect(hidden([{ filter: "spoiler" }], one)).toBe(true);
  expect(hidden([{ filter: "spoiler", opened: false }], one)).toBe(false);
  expect(hidden([{ filter: "" }], one)).toBe(false);
  expect(hidden([{ type: 1, filter: "^No .* here$" }], one)).toBe(true);
  expect(hidden([{ type: 1, filter: "(" }], one)).toBe(false);
  expect(hidden([{ type: 2, filter: "ab" }], one)).toBe(true);
  expect(hidden([{ type: 2, filter: "a" }], one)).toBe(false);
});

it("hides by level only what has a lower flag, where flags are known", () => {
  const flags = new Map([[1, { default: 4, flags: new Map([["2", 9]]) }]]);
  const at = (level: number, id: string, segment = 1) =>
    shower({ rules: [], level, flags }, () => segment)(comment(id, "x"));
  expect([at(0, "1"), at(4, "1"), at(5, "1"), at(9, "2"), at(10, "2")]).toEqual([
    true,
    true,
    false,
    true,
    false,
  ]);
  expect(at(11, "1", 2)).toBe(true);
});

it("counts each comment once along the video", () => {
  const all = [0, 499, 500, 999, 1000, 5000].map((ms) => comment("1", "x", { progress_ms: ms }));
  expect(density(all, 1000, 2)).toEqual([2, 4]);
  expect(density([], 0, 3)).toEqual([0, 0, 0]);
});

it("stretches the clip over the length of the video that it stands in for", () => {
  expect(scaleOf("lantern-1", 2_400_000, 60)).toBe(40);
  expect(scaleOf("tide", 2_400_000, 60)).toBe(1);
  expect(scaleOf("x", undefined, 60)).toBe(1);
  expect(scaleOf("x", 5, Number.NaN)).toBe(1);
  expect(startOf(1_200_000, 40, 60)).toBe(30);
  expect(startOf(2_390_000, 40, 60)).toBe(0);
  expect(startOf(undefined, 1, 60)).toBe(0);
});
