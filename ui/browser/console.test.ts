// The console: topics, partitions, and how far views are behind.

import { afterAll, beforeAll, expect, it } from "vitest";
import { Stage, shoot, type View } from "./stage.js";

let stage: Stage;
beforeAll(async () => {
  stage = await Stage.open();
});
afterAll(async () => {
  await stage.close();
  expect(stage.faults).toEqual([]);
});

interface Bounds {
  partition: number;
  start: number;
  synced: number;
}
const topic = (name: string) => stage.json<{ bounds: Bounds[] }>(`/v1/topics/${name}`);

it("lists every topic with its positions, and looks again by itself", async () => {
  const { topics } = await stage.json<{ topics: { name: string }[] }>("/v1/topics");
  const page = await stage.visit("/");
  await page.getByRole("link", { name: "Console" }).click();
  const rows = page.locator("[data-topic]");
  await expect.poll(() => rows.count()).toBe(topics.length);
  const positions = page.locator('[data-topic="history"] td').nth(2);
  const kept = async () =>
    (await topic("history")).bounds.reduce((all, { start, synced }) => all + synced - start + 1, 0);
  const before = await kept();
  expect(before).toBeGreaterThan(0);
  await expect.poll(() => positions.textContent()).toBe(String(before));
  await stage.json("/v1/users/ida/history", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ kind: "video", id: "new" }),
  });
  expect(await kept()).toBe(before + 1);
  await expect.poll(() => positions.textContent()).toBe(String(before + 1));
  await page.getByRole("button", { name: "history", exact: true }).click();
  const { bounds } = await topic("history");
  for (const { partition, start, synced } of bounds.filter(({ synced }) => synced > 0)) {
    const cells = page.locator(`[data-partition="${partition}"] td`);
    expect((await cells.allTextContents()).slice(1, 3)).toEqual([String(start), String(synced)]);
  }
  await page.context().close();
});

const VIEWS: View[] = [
  { width: 1280, language: "en", theme: "light" },
  { width: 390, language: "zh", theme: "dark" },
];

it.each(VIEWS)("fits at $width pixels, $language, $theme", async (view) => {
  const page = await stage.visit("/#/console", view);
  await page.locator('[data-topic="danmaku"]').waitFor();
  await page.getByRole("button", { name: "danmaku", exact: true }).click();
  await page.locator("[data-partition]").first().waitFor();
  expect(await page.evaluate(() => document.scrollingElement?.scrollWidth)).toBe(view.width);
  await shoot(page, `console-${view.width}-${view.language}-${view.theme}`);
  await page.context().close();
});
