// The video page, with what every server has: places and heartbeats.

import type { Page, Route } from "playwright-core";
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

it("keeps marks over a reload while the server is out of reach, and sends each once", async () => {
  const page = await stage.visit("/#/video/far-1", { user: "kim" });
  const context = page.context();
  const ready = () =>
    page.waitForFunction(() => (document.querySelector("video")?.duration ?? 0) > 59);
  await ready();
  // The pages still come, nothing else does.
  let far = true;
  const lost = (route: Route) => (far ? route.abort("internetdisconnected") : route.fallback());
  await context.route("**/v1/users/**", lost);
  await context.routeWebSocket("**/v1/live", (socket) => {
    if (far) socket.close();
    else socket.connectToServer();
  });
  for (const [n, id] of ["far-1", "far-2", "far-3"].entries()) {
    // Each page opens a connection of its own.
    await page.goto(`${stage.base}/?${n}#/video/${id}`);
    await ready();
    await page.evaluate((n) => {
      document.querySelector("video")!.currentTime = 10 + n;
    }, n);
    const marks = () => kept(page).then((all) => all.map(({ id }) => id));
    await expect.poll(marks).toContain(id);
  }
  await page.reload();
  await ready();
  const waiting = await kept(page);
  expect([...new Set(waiting.map(({ id }) => id))]).toEqual(["far-1", "far-2", "far-3"]);
  const sent: { event_id: string }[] = [];
  const taken: number[] = [];
  page.on("response", async (response) => {
    if (!response.url().includes("history:merge") || !response.ok()) return;
    sent.push(...response.request().postDataJSON());
    taken.push((await response.json()).duplicate);
  });
  far = false;
  await page.evaluate(() => dispatchEvent(new Event("online")));
  await expect.poll(() => kept(page)).toEqual([]);
  const names = (marks: { event_id: string }[]) => marks.map(({ event_id }) => event_id).sort();
  await expect.poll(() => names(sent)).toEqual(names(waiting));
  expect(taken.every((duplicates) => duplicates === 0)).toBe(true);
  for (const [n, id] of ["far-1", "far-2", "far-3"].entries()) {
    expect(await point("kim", id)).toMatchObject({ found: true, position_ms: 10_000 + 1000 * n });
  }
  await context.close();
  // The browser's own words about the lost network, and no others.
  const faults = stage.faults.splice(0);
  expect(faults.filter((fault) => !fault.includes("ERR_INTERNET_DISCONNECTED"))).toEqual([]);
});

/** Marks that wait in the browser for the server. */
function kept(page: Page): Promise<{ id: string; event_id: string }[]> {
  return page.evaluate(async () => {
    const names = (await indexedDB.databases()).map(({ name }) => name);
    if (!names.includes("tideline-kim")) return [];
    return new Promise((found) => {
      indexedDB.open("tideline-kim").onsuccess = ({ target }) => {
        const database = (target as IDBOpenDBRequest).result;
        const all = database.transaction("marks").objectStore("marks").getAll();
        all.onsuccess = () => {
          database.close();
          found(all.result.map(({ mark }) => mark));
        };
      };
    });
  });
}

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
