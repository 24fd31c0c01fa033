// The video page, with what every server has: places and heartbeats.

import { afterAll, beforeAll, expect, it } from "vitest";
import { Stage } from "./stage.js";

let stage: Stage;
beforeAll(async () => {
  stage = await Stage.open();
});
afterAll(async () => {
  await stage.close();
  expect(stage.faults).toEqual([]);
});

interface Point {
  found: boolean;
  position_ms?: number;
  duration_ms?: number;
}
const point = (user: string, id: string) =>
  stage.json<Point>(`/v1/users/${user}/progress/video/${id}`);

it("plays the clip, seeks in it by ranges, and tells where it is", async () => {
  const page = await stage.visit("/", { user: "zoe" });
  const parts: number[] = [];
  page.on("response", (response) => {
    if (response.url().endsWith(".webm")) parts.push(response.status());
  });
  await page.getByRole("link", { name: "Video" }).click();
  await page.locator("video").waitFor();
  await page.waitForFunction(() => document.querySelector("video")!.duration > 59);
  await page.evaluate(async () => {
    const video = document.querySelector("video")!;
    video.muted = true;
    video.currentTime = 40;
    await video.play();
  });
  await page.waitForFunction(() => document.querySelector("video")!.currentTime > 41);
  await page.evaluate(() => document.querySelector("video")!.pause());
  await expect.poll(() => point("zoe", "tide")).toMatchObject({ found: true });
  await expect.poll(async () => (await point("zoe", "tide")).position_ms).toBeGreaterThan(40_500);
  expect((await point("zoe", "tide")).duration_ms).toBe(60_000);
  expect(new Set(parts)).toEqual(new Set([206]));
  await page.context().close();
});

it("goes on where a video was left, at its own length, and leaves a mark when left", async () => {
  const before = await point("demo", "tidewater-2");
  const page = await stage.visit("/", { user: "demo" });
  await page.locator("[data-row]", { hasText: "Tidewater, episode 2" }).focus();
  await page.keyboard.press("Enter");
  await page.getByText("Goes on at 9:00").waitFor();
  expect(before).toMatchObject({ position_ms: 540_000, duration_ms: 2_340_000 });
  const at = await page.evaluate(() => document.querySelector("video")!.currentTime);
  expect(at).toBeCloseTo((540 / 2340) * 60, 0);
  await page.evaluate(() => {
    document.querySelector("video")!.currentTime = 30;
  });
  await page.waitForFunction(() => !document.querySelector("video")!.seeking);
  await page.goto("about:blank");
  await expect.poll(async () => (await point("demo", "tidewater-2")).position_ms).toBe(1_170_000);
  expect((await point("demo", "tidewater-2")).duration_ms).toBe(2_340_000);
  await page.context().close();
});

it("keeps marks while the server is out of reach, and sends them when it is back", async () => {
  const page = await stage.visit("/#/video/tide", { user: "kim" });
  await page.waitForFunction(() => (document.querySelector("video")?.duration ?? 0) > 59);
  await page.context().setOffline(true);
  await page.evaluate(() => {
    const video = document.querySelector("video")!;
    video.currentTime = 1;
  });
  await page.waitForFunction(async () => {
    const names = (await indexedDB.databases()).map(({ name }) => name);
    if (!names.includes("tideline-kim")) return false;
    return new Promise<boolean>((found) => {
      indexedDB.open("tideline-kim").onsuccess = ({ target }) => {
        const database = (target as IDBOpenDBRequest).result;
        const counting = database.transaction("marks").objectStore("marks").count();
        counting.onsuccess = () => {
          database.close();
          found(counting.result > 0);
        };
      };
    });
  });
  expect(await point("kim", "tide")).toMatchObject({ found: false });
  stage.faults.length = 0; // The browser's own words about the lost network.
  await page.context().setOffline(false);
  await expect
    .poll(() => point("kim", "tide"))
    .toMatchObject({
      found: true,
      position_ms: 1000,
    });
  await page.context().close();
});

it("shows nothing of comments where the server has none", async () => {
  const { paths } = await stage.json<{ paths: object }>("/openapi.json");
  if ("/v1/videos/{video}/danmaku/view" in paths) return;
  const page = await stage.visit("/#/video/tide");
  await page.locator("video").waitFor();
  expect(await page.locator(".comments").count()).toBe(0);
  await page.goto(`${stage.base}/#/owner/tide`);
  await page.getByRole("heading", { name: "History" }).waitFor();
  await page.context().close();
});
