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
  const drawn = page.locator("[data-node]");
  expect(await drawn.count()).toBe(topics.length);
  await page.locator('[data-topic="history"] a').click();
  const { bounds } = await topic("history");
  for (const { partition, start, synced } of bounds.filter(({ synced }) => synced > 0)) {
    const cells = page.locator(`[data-partition="${partition}"] td`);
    await cells.first().waitFor();
    expect((await cells.allTextContents()).slice(1, 3)).toEqual([String(start), String(synced)]);
  }
  await page.context().close();
});

it("shows what is written to a topic, as it comes and once, and where it goes", async () => {
  const put = (path: string, body: unknown, method = "PUT") =>
    stage.json(path, {
      method,
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
  await put("/v1/topics/clicks", { partitions: 2 });
  await put("/v1/topics/buys", { source: "clicks", operator: { filter: "value.buy" } });
  const produce = (values: string[]) =>
    put("/v1/topics/clicks/records", { records: values.map((value) => ({ value })) }, "POST");
  await produce(['{"n":1}']);
  const page = await stage.visit("/#/console/topics/clicks");
  const shown = page.locator(".records code");
  const texts = async () => (await shown.allTextContents()).sort();
  await expect.poll(texts).toEqual(['{"n":1}']);
  await produce(['{"n":2,"buy":true}', '{"n":3,"buy":false}', "<b>x</b>"]);
  await expect
    .poll(texts)
    .toEqual(["<b>x</b>", '{"n":1}', '{"n":2,"buy":true}', '{"n":3,"buy":false}']);
  expect(await page.locator(".records b:has-text('x')").count()).toBe(0);
  await page.getByRole("button", { name: "Hold still" }).click();
  await page.getByRole("link", { name: "buys" }).click();
  await page.locator('[data-open="buys"]').waitFor();
  await expect.poll(async () => (await texts()).length).toBeGreaterThan(0);
  expect(await texts()).toContain('{"n":2,"buy":true}');
  expect(await texts()).not.toContain('{"n":3,"buy":false}');
  expect(await page.locator(".facts code").textContent()).toContain("value.buy");
  await page.context().close();
});

it("walks through the metadata tree", async () => {
  stage.meta("subtree", "create", "/apps/feed");
  stage.meta("create", "/apps/feed/limits", "many");
  stage.meta("create", "/apps/feed/limits/<b>", "100");
  const page = await stage.visit("/#/console");
  await page.getByRole("link", { name: "Metadata" }).click();
  const feed = page.locator('[data-subtree="/apps/feed"]');
  await feed.waitFor();
  expect((await feed.locator("td").allTextContents()).slice(0, 2)).toEqual(["2", "2"]);
  await feed.getByRole("link").click();
  await page.getByRole("link", { name: "limits" }).click();
  await page.getByRole("link", { name: "<b>" }).click();
  await expect.poll(() => page.locator(".value").textContent()).toBe("100");
  stage.meta("set", "/apps/feed/limits/<b>", "200");
  await expect.poll(() => page.locator(".value").textContent()).toBe("200");
  await page.getByRole("link", { name: "limits" }).click();
  await expect.poll(() => page.locator(".value").textContent()).toBe("many");
  await page.context().close();
});

const VIEWS: View[] = [
  { width: 1280, language: "en", theme: "light" },
  { width: 390, language: "zh", theme: "dark" },
];

it.each(VIEWS)("fits at $width pixels, $language, $theme", async (view) => {
  const page = await stage.visit("/#/console", view);
  await page.locator('[data-topic="danmaku"]').waitFor();
  expect(await page.evaluate(() => document.scrollingElement?.scrollWidth)).toBe(view.width);
  await shoot(page, `console-${view.width}-${view.language}-${view.theme}`);
  await page.locator('[data-topic="danmaku"] a').click();
  await page.locator("[data-partition]").first().waitFor();
  await page.locator(".records li").first().waitFor();
  expect(await page.evaluate(() => document.scrollingElement?.scrollWidth)).toBe(view.width);
  await shoot(page, `topic-${view.width}-${view.language}-${view.theme}`);
  await page.context().close();
});
