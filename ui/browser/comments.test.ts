// The video page and the owner's page, where the server has comments.

import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { Stage, shoot, type View } from "./stage.js";
import { StandIn } from "./stand-in.js";

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

function filled(): StandIn {
  const room = new StandIn("tide");
  for (let n = 0; n < 40; n++) {
    const at = Math.round(30_000 + 25_000 * Math.sin(n * 1.7) * (n / 40));
    room.add(`${TEXTS[n % TEXTS.length]}`, at, { mode: n % 5 === 0 ? "top" : "scroll" });
  }
  return room;
}

async function open(path: string, room: StandIn, view: View = {}): Promise<Page> {
  const page = await stage.visitor(view);
  await room.serve(page.context());
  await page.goto(`${stage.base}${path}`);
  return page;
}

const lines = (page: Page) => page.locator(".comment-list li");

it("lists the comments, sends one that both viewers see once, and hides what one does not want", async () => {
  const room = filled();
  const [ann, ben] = [await open("/#/video/tide", room), await open("/#/video/tide", room)];
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
  expect(room.rules).toEqual([{ type: 0, filter: "TIDE", opened: true }]);
  expect(await lines(ben).filter({ hasText: "The tide turns" }).count()).toBe(7);
  const before = await lines(ann).count();
  await ann.getByRole("slider").fill("5");
  await expect.poll(() => lines(ann).count()).toBeLessThan(before);
  await ann.context().close();
  await ben.context().close();
});

it("lets the owner find, protect, hide and undo, by keys", async () => {
  const room = filled();
  const [owner, viewer] = [await open("/#/owner/tide", room), await open("/#/video/tide", room)];
  await expect.poll(() => lines(viewer).count()).toBe(40);
  await expect.poll(() => owner.locator(".owned").count()).toBe(40);
  await owner.getByRole("searchbox").fill("前方");
  await expect.poll(() => owner.locator(".owned").count()).toBe(7);
  const first = owner.locator(".owned").first();
  await first.getByRole("button", { name: "Protect" }).focus();
  await owner.keyboard.press("Enter");
  await first.getByRole("button", { name: "Protect no more" }).waitFor();
  await first.getByRole("button", { name: "Hide" }).focus();
  await owner.keyboard.press("Enter");
  await expect.poll(() => lines(viewer).count()).toBe(39);
  await owner.getByRole("button", { name: "Undo" }).focus();
  await owner.keyboard.press("Enter");
  await expect.poll(() => lines(viewer).count()).toBe(40);
  await owner.keyboard.press("Enter");
  await first.getByRole("button", { name: "Protect", exact: true }).waitFor();
  const [{ id }] = room.changes as [{ id: string }];
  expect(room.changes).toEqual([
    { id, rank: "protected" },
    { id, state: "hidden" },
    { id, state: "shown" },
    { id, rank: "plain" },
  ]);
  await owner.getByRole("searchbox").fill("");
  const bars = owner.locator(".density button");
  expect(await bars.count()).toBe(60);
  await bars.nth(59).click();
  expect(await owner.locator(".owned").count()).toBeLessThan(40);
  await owner.context().close();
  await viewer.context().close();
});

const VIEWS: View[] = ([1280, 390] as const).flatMap((width) =>
  (["en", "zh"] as const).flatMap((language) =>
    (["light", "dark"] as const).map((theme) => ({ width, language, theme })),
  ),
);

it.each(VIEWS)("looks right at $width pixels, $language, $theme", async (view) => {
  const room = filled();
  // Each where nobody has been.
  const user =
    ["ann", "ben", "cai", "dan", "eva", "fei", "gus", "hua"][VIEWS.indexOf(view)] ?? "ida";
  const page = await open("/#/video/tide", room, { ...view, user });
  await expect.poll(() => lines(page).count()).toBe(40);
  await page.waitForFunction(() => (document.querySelector("video")?.readyState ?? 0) > 2);
  await page.evaluate(async () => {
    const video = document.querySelector("video")!;
    video.muted = true;
    video.currentTime = 28;
    await video.play();
  });
  await page.waitForFunction(() => document.querySelector("video")!.currentTime > 31);
  await page.evaluate(() => document.querySelector("video")!.pause());
  const wide = await page.evaluate(() => document.scrollingElement?.scrollWidth);
  expect(wide).toBe(view.width);
  await shoot(page, `video-${view.width}-${view.language}-${view.theme}`);
  await page
    .getByRole("link", { name: view.language === "zh" ? "弹幕管理" : "Moderation" })
    .click();
  await expect.poll(() => page.locator(".owned").count()).toBe(40);
  expect(await page.evaluate(() => document.scrollingElement?.scrollWidth)).toBe(view.width);
  await shoot(page, `owner-${view.width}-${view.language}-${view.theme}`);
  await page.context().close();
});
