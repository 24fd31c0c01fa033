// The video page and the owner's page, where the server has comments.

import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { Room } from "./room.js";
import { Stage, shoot, type View } from "./stage.js";

let stage: Stage;
beforeAll(async () => {
  stage = await Stage.open();
});
afterAll(async () => {
  await stage.close();
  expect(stage.faults).toEqual([]);
});

const TEXTS = [
  "The tide turns",
  "涨潮了",
  "look at the sun",
  "前方高能",
  "again!",
  "<b>not bold</b>",
];

async function filled(video: string): Promise<Room> {
  const room = new Room(stage, video);
  const posts = Array.from({ length: 40 }, (_, n) => {
    const at = Math.round(30_000 + 25_000 * Math.sin(n * 1.7) * (n / 40));
    return room.add(`${TEXTS[n % TEXTS.length]}`, at, { mode: n % 5 === 0 ? "top" : "scroll" });
  });
  await Promise.all(posts);
  return room;
}

const lines = (page: Page) => page.locator(".comment-list li");

it("lists the comments, sends one that both viewers see once, and hides what one does not want", async () => {
  await filled("talk");
  const open = (user: string) => stage.visit("/#/video/talk", { user });
  const [ann, ben] = [await open("ann"), await open("ben")];
  for (const page of [ann, ben]) await expect.poll(() => lines(page).count()).toBe(40);
  await ann.getByLabel("Say something").fill("hello from ann");
  await ann.keyboard.press("Enter");
  for (const page of [ann, ben]) {
    await expect.poll(() => lines(page).filter({ hasText: "hello from ann" }).count()).toBe(1);
    expect(await lines(page).count()).toBe(41);
  }
  expect(await ann.locator(".comment-list b").count()).toBe(0);
  await ann.getByText("What I want to see").click();
  await ann.getByLabel("Hide what has…").fill("TIDE");
  await ann.getByRole("button", { name: "Add" }).click();
  await expect.poll(() => lines(ann).filter({ hasText: "The tide turns" }).count()).toBe(0);
  expect(await lines(ben).filter({ hasText: "The tide turns" }).count()).toBe(7);
  await ann.reload();
  await expect.poll(() => lines(ann).count()).toBe(34);
  // The rule holds for every video of hers, and until she takes it back.
  await ann.getByText("What I want to see").click();
  await ann.getByRole("button", { name: "Remove TIDE" }).click();
  await expect.poll(() => lines(ann).count()).toBe(41);
  await ann.context().close();
  await ben.context().close();
});

it("lets the owner find, protect, hide and undo, by keys", async () => {
  const room = await filled("owned");
  const owner = await stage.visit("/#/owner/owned");
  const viewer = await stage.visit("/#/video/owned", { user: "ben" });
  await expect.poll(() => lines(viewer).count()).toBe(40);
  await expect.poll(() => owner.locator(".owned").count()).toBe(40);
  await owner.getByRole("searchbox").fill("前方");
  await expect.poll(() => owner.locator(".owned").count()).toBe(7);
  const first = owner.locator(".owned").first();
  await first.getByRole("button", { name: "Protect" }).focus();
  await owner.keyboard.press("Enter");
  await first.getByRole("button", { name: "Protect no more" }).waitFor();
  const kept = async () => (await room.all()).filter(({ attr }) => attr & 1).length;
  await expect.poll(kept).toBe(1);
  await first.getByRole("button", { name: "Hide" }).focus();
  await owner.keyboard.press("Enter");
  await expect.poll(() => lines(viewer).count()).toBe(39);
  await owner.getByRole("button", { name: "Undo" }).focus();
  await owner.keyboard.press("Enter");
  await expect.poll(() => lines(viewer).count()).toBe(40);
  await owner.keyboard.press("Enter");
  await first.getByRole("button", { name: "Protect", exact: true }).waitFor();
  await expect.poll(kept).toBe(0);
  await owner.getByRole("searchbox").fill("");
  const bars = owner.locator(".density button");
  expect(await bars.count()).toBe(60);
  const last = (await bars.nth(59).getAttribute("aria-label")) ?? "";
  await bars.nth(59).click();
  await expect.poll(() => owner.locator(".owned").count()).toBe(Number(/: (\d+) /.exec(last)?.[1]));
  await owner.getByRole("button", { name: "×" }).click();
  await expect.poll(() => owner.locator(".owned").count()).toBe(40);
  await owner.context().close();
  await viewer.context().close();
});

it("lists what is hidden by its reason, and undoes it on a later visit", async () => {
  const room = await filled("later");
  const owner = await stage.visit("/#/owner/later");
  await expect.poll(() => owner.locator(".owned").count()).toBe(40);
  const first = owner.locator(".owned").first();
  const text = await first.locator(".row-title").textContent();
  await first.getByRole("button", { name: "Hide" }).click();
  await expect.poll(async () => (await room.all()).length).toBe(39);
  await owner.reload();
  await expect.poll(() => owner.locator(".owned").count()).toBe(40);
  await owner.getByLabel("Which comments").selectOption({ label: "Hidden (1)" });
  await expect.poll(() => owner.locator(".owned").count()).toBe(1);
  expect(await first.locator(".row-title").textContent()).toBe(text);
  expect(await first.locator(".row-facts").textContent()).toContain("Hidden · ");
  await owner.getByRole("button", { name: "Undo" }).click();
  await expect.poll(async () => (await room.all()).length).toBe(40);
  await expect.poll(() => owner.locator(".owned").count()).toBe(0);
  expect(await owner.getByRole("button", { name: "Undo" }).isDisabled()).toBe(true);
  // And shown again without an undo, which is one that can be undone.
  await owner.getByLabel("Which comments").selectOption("shown");
  await first.getByRole("button", { name: "Hide" }).click();
  await owner.getByLabel("Which comments").selectOption("hidden");
  await first.getByRole("button", { name: "Show again" }).click();
  await expect.poll(async () => (await room.all()).length).toBe(40);
  await owner.getByRole("button", { name: "Undo" }).click();
  await expect.poll(async () => (await room.all()).length).toBe(39);
  await owner.context().close();
});

const VIEWS: View[] = ([1280, 390] as const).flatMap((width) =>
  (["en", "zh"] as const).flatMap((language) =>
    (["light", "dark"] as const).map((theme) => ({ width, language, theme })),
  ),
);

/** Comments across the clip, with `--demo`. */
const DEMO = 48;

it.each(VIEWS)("looks right at $width pixels, $language, $theme", async (view) => {
  // Each where nobody has been.
  const user =
    ["ann", "ben", "cai", "dan", "eva", "fei", "gus", "hua"][VIEWS.indexOf(view)] ?? "ida";
  const page = await stage.visit("/#/video/tide", { ...view, user });
  await expect.poll(() => lines(page).count()).toBe(DEMO);
  await page.waitForFunction(() => (document.querySelector("video")?.readyState ?? 0) > 2);
  await page.evaluate(async () => {
    const video = document.querySelector("video")!;
    video.muted = true;
    video.currentTime = 34;
    await video.play();
  });
  await page.waitForFunction(() => document.querySelector("video")!.currentTime > 37);
  await page.evaluate(() => document.querySelector("video")!.pause());
  const wide = await page.evaluate(() => document.scrollingElement?.scrollWidth);
  expect(wide).toBe(view.width);
  await shoot(page, `video-${view.width}-${view.language}-${view.theme}`);
  await page
    .getByRole("link", { name: view.language === "zh" ? "弹幕管理" : "Moderation" })
    .click();
  await expect.poll(() => page.locator(".owned").count()).toBe(DEMO);
  expect(await page.evaluate(() => document.scrollingElement?.scrollWidth)).toBe(view.width);
  await shoot(page, `owner-${view.width}-${view.language}-${view.theme}`);
  await page.context().close();
});
