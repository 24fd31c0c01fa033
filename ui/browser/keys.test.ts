// Every page with the keyboard alone: Tab finds what is there, in the order of
// the page, and one sees where one is.

import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { Room } from "./room.js";
import { Stage } from "./stage.js";

let stage: Stage;
beforeAll(async () => {
  stage = await Stage.open();
});
afterAll(async () => {
  await stage.close();
  expect(stage.faults).toEqual([]);
});

/** More stops than any page has before what a test looks for. */
const STOPS_MAX = 60;

/** Where the keys go now: its name, and whether one sees that. */
const focused = (page: Page) =>
  page.evaluate(() => {
    const at = document.activeElement as HTMLInputElement;
    const name =
      at.getAttribute("aria-label") ?? at.labels?.[0]?.textContent ?? at.textContent ?? at.tagName;
    const seen = getComputedStyle(at).outlineStyle !== "none";
    return { name: name.trim(), seen };
  });

/** Presses Tab until the keys go to what has this name. */
async function tabTo(page: Page, name: string | RegExp, key = "Tab"): Promise<string> {
  const passed: string[] = [];
  for (let stops = 0; stops < STOPS_MAX; stops++) {
    await page.keyboard.press(key);
    const at = await focused(page);
    passed.push(at.name);
    if (typeof name === "string" ? at.name === name : name.test(at.name)) {
      expect(at.seen, `one sees that the keys go to ${at.name}`).toBe(true);
      return at.name;
    }
  }
  throw new Error(`no ${name} among: ${passed.join(" | ")}`);
}

const press = (page: Page, key = "Enter") => page.keyboard.press(key);

it("the history: skip, pause, narrow, remove, go on watching", async () => {
  const page = await stage.visit("/", { user: "ann" });
  await page.locator("[data-row]").first().waitFor();
  const count = async () =>
    (await stage.json<{ count: number }>("/v1/users/ann/history/count")).count;
  const before = await count();
  await page.keyboard.press("Tab");
  expect((await focused(page)).name).toBe("Skip to content");
  await press(page);
  await tabTo(page, "Clear…");
  await tabTo(page, "Pause");
  await press(page);
  await page.getByText("Recording is paused").waitFor();
  expect((await focused(page)).name).toBe("Record again");
  await press(page);
  await page.getByText("Recording is on").waitFor();
  await tabTo(page, "Videos");
  await press(page, "Space");
  await page.waitForFunction(
    () => document.querySelector(".chip[aria-pressed=true]")?.textContent === "Videos",
  );
  await tabTo(page, "Unfinished");
  await press(page, "Space");
  await expect.poll(() => page.getByText(/^Resume at \d/).count()).toBeGreaterThan(1);
  const removed = (await tabTo(page, /^Remove /)).replace("Remove ", "");
  await press(page);
  await page.getByText(`Removed: ${removed}`).waitFor();
  expect(await count()).toBe(before - 1);
  // The keys are on the row that took its place.
  await press(page);
  await page.getByText(/^Goes on at \d/).waitFor();
  await page.context().close();
});

it("the video: play, seek, say something, like, hide, and take it back", async () => {
  const room = new Room(stage, "keys");
  await room.add("first", 5_000);
  await room.add("second", 6_000);
  const page = await stage.visit("/#/video/keys", { user: "kim" });
  const lines = page.locator(".comment-list li");
  await expect.poll(() => lines.count()).toBe(2);
  await page.waitForFunction(() => (document.querySelector("video")?.readyState ?? 0) > 2);
  const video = () =>
    page.evaluate(() => {
      const { paused, currentTime } = document.querySelector("video")!;
      return { paused, currentTime };
    });
  await tabTo(page, /^Video player/);
  await press(page, "ArrowRight");
  await expect.poll(async () => (await video()).currentTime).toBeGreaterThanOrEqual(5);
  await press(page, "Space");
  await expect.poll(async () => (await video()).paused).toBe(false);
  await press(page, "Space");
  await expect.poll(async () => (await video()).paused).toBe(true);
  // Outside of the player its keys do what they do elsewhere.
  await tabTo(page, "Like: first");
  await press(page, "Space");
  await expect.poll(async () => (await room.all()).map(({ likes }) => likes)).toEqual([1, 0]);
  expect((await video()).paused).toBe(true);
  await tabTo(page, "Hide this sender: second");
  await press(page);
  await expect.poll(() => lines.count()).toBe(1);
  await tabTo(page, "Say something");
  await page.keyboard.type("by keys");
  await tabTo(page, "How it moves");
  await page.keyboard.type("T");
  await tabTo(page, "Send");
  await press(page);
  await expect.poll(() => lines.allTextContents()).toContainEqual(expect.stringMatching("by keys"));
  const said = async () => (await room.all()).find(({ text }) => text === "by keys");
  await expect.poll(async () => (await said())?.mode).toBe("top");
  await tabTo(page, "What I want to see");
  await press(page);
  await tabTo(page, /^Remove /);
  await press(page);
  await expect.poll(() => lines.count()).toBe(3);
  await page.context().close();
});

it("the owner's page: look along the video, find, protect, hide, undo", async () => {
  const room = new Room(stage, "kept");
  for (let n = 0; n < 6; n++) await room.add(`text ${n}`, n * 10_000);
  const page = await stage.visit("/#/owner/kept");
  const rows = page.locator(".owned");
  await expect.poll(() => rows.count()).toBe(6);
  // One stop for all the bars, arrows between them.
  await tabTo(page, "0:00: 1 entry");
  await press(page, "End");
  await press(page);
  await expect.poll(() => rows.allTextContents()).toEqual([expect.stringContaining("text 5")]);
  await press(page);
  await expect.poll(() => rows.count()).toBe(6);
  await tabTo(page, "Search text or sender");
  await page.keyboard.type("text 3");
  await expect.poll(() => rows.count()).toBe(1);
  await tabTo(page, "Protect");
  await press(page);
  await rows.getByText("Protect no more").waitFor();
  await tabTo(page, "Hide");
  await press(page);
  await expect.poll(async () => (await room.all()).length).toBe(5);
  await tabTo(page, "Undo", "Shift+Tab");
  // The second is asked for before the first is answered.
  await press(page);
  await press(page);
  await expect.poll(async () => (await room.all()).length).toBe(6);
  await expect.poll(async () => (await room.all()).some(({ attr }) => attr & 1)).toBe(false);
  await page.context().close();
});
