// The history page, as people use it.

import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Stage, shoot, type View } from "./stage.js";

let stage: Stage;
beforeAll(async () => {
  stage = await Stage.open();
});
afterAll(async () => {
  await stage.close();
  expect(stage.faults).toEqual([]);
});

const rows = (page: Page) => page.locator("[data-row]");
const count = async (user: string) =>
  (await stage.json<{ count: number }>(`/v1/users/${user}/history/count`)).count;

const VIEWS: Required<Omit<View, "user" | "apart">>[] = ([1280, 390] as const).flatMap((width) =>
  (["en", "zh"] as const).flatMap((language) =>
    (["light", "dark"] as const).map((theme) => ({ width, language, theme })),
  ),
);

describe.each(VIEWS)("at $width pixels, $language, $theme", (view) => {
  it("shows days, titles and places, and nothing hangs over the edge", async () => {
    const page = await stage.visit("/", view);
    await rows(page).first().waitFor();
    expect(await page.locator("h1").textContent()).toBe(
      view.language === "zh" ? "历史记录" : "History",
    );
    const day = (await page.locator("h2.day").first().textContent()) ?? "";
    expect(day).toMatch(
      view.language === "zh" ? /^(今天|昨天)\d+ 条$/ : /^(Today|Yesterday)\d+ entr/,
    );
    expect(await page.getByText("The Lantern Keepers, episode 4").count()).toBe(1);
    const [wide, ground] = await page.evaluate(() => [
      document.scrollingElement?.scrollWidth,
      getComputedStyle(document.body).backgroundColor,
    ]);
    expect(wide).toBe(view.width);
    expect(ground).toBe(view.theme === "dark" ? "rgb(15, 21, 24)" : "rgb(246, 248, 249)");
    await shoot(page, `history-${view.width}-${view.language}-${view.theme}`);
    await page.context().close();
  });
});

it("lists every row of the user under a day, as many as the day says", async () => {
  const page = await stage.visit("/");
  await rows(page).first().waitFor();
  expect(await rows(page).count()).toBe(await count("demo"));
  for (const section of await page.locator("section").all()) {
    const said = Number.parseInt((await section.locator("h2 small").textContent()) ?? "", 10);
    expect(await section.locator("[data-row]").count()).toBe(said);
  }
  await page.context().close();
});

it("narrows the list to a kind and to what is unfinished", async () => {
  const page = await stage.visit("/");
  await page.getByRole("button", { name: "Articles", exact: true }).click();
  await page.waitForFunction(() => document.querySelectorAll("[data-row]").length === 3);
  await page.getByRole("button", { name: "All", exact: true }).click();
  await page.getByLabel("Unfinished").check();
  const asked = await stage.json<{ items: unknown[] }>(
    "/v1/users/demo/history?unfinished=true&limit=100",
  );
  expect(asked.items.length).toBeGreaterThan(0);
  await page.waitForFunction(
    (n) => document.querySelectorAll("[data-row]").length === n,
    asked.items.length,
  );
  expect(await page.getByText(/^Resume at \d/).count()).toBeGreaterThan(0);
  await page.context().close();
});

it("moves by arrow keys and removes by Delete, on the server too", async () => {
  const page = await stage.visit("/", { user: "ann" });
  await rows(page).first().waitFor();
  const before = await count("ann");
  const titles = await page.locator(".row-title").allTextContents();
  await rows(page).first().focus();
  await page.keyboard.press("ArrowDown");
  expect(await page.evaluate(() => document.activeElement?.getAttribute("aria-label"))).toBe(
    titles[1],
  );
  await page.keyboard.press("Delete");
  await page.getByText(`Removed: ${titles[1]}`).waitFor();
  await page.waitForFunction(
    (title) => document.activeElement?.getAttribute("aria-label") === title,
    titles[2],
  );
  expect(await count("ann")).toBe(before - 1);
  await page.reload();
  await rows(page).first().waitFor();
  expect(await page.locator(".row-title").allTextContents()).toEqual(titles.toSpliced(1, 1));
  await page.context().close();
});

it("pauses recording, says so, and records again", async () => {
  const page = await stage.visit("/", { user: "ann" });
  const recording = async () =>
    (await stage.json<{ recording: boolean }>("/v1/users/ann/history/settings")).recording;
  await page.getByRole("button", { name: "Pause" }).click();
  await page.getByText("Recording is paused").waitFor();
  expect(await recording()).toBe(false);
  await page.reload();
  await page.getByText("Recording is paused").waitFor();
  await page.getByRole("button", { name: "Record again" }).click();
  await page.getByText("Recording is on").waitFor();
  expect(await recording()).toBe(true);
  await page.context().close();
});

it("clears what is asked for, by keys alone, after asking once more", async () => {
  const page = await stage.visit("/", { user: "ben" });
  await rows(page).first().waitFor();
  const before = await count("ben");
  await page.getByRole("button", { name: "Clear…" }).focus();
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  expect(await count("ben")).toBe(before);
  expect(await page.evaluate(() => document.activeElement?.textContent)).toBe("Clear…");
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").waitFor();
  await page.getByLabel("Everything").focus();
  await page.keyboard.press("Space");
  await page.keyboard.press("Enter");
  await page.getByText(`${before} entries removed`).waitFor();
  await page.getByText("Nothing here yet.").waitFor();
  expect(await count("ben")).toBe(0);
  await page.context().close();
});

it("keeps the language and the theme that were chosen", async () => {
  const page = await stage.visit("/");
  await page.getByRole("button", { name: "切换到中文" }).click();
  await page.getByRole("heading", { name: "历史记录" }).waitFor();
  await page.getByRole("button", { name: "主题：跟随系统" }).click();
  await page.getByRole("button", { name: "主题：浅色" }).click();
  await page.reload();
  await page.getByRole("heading", { name: "历史记录" }).waitFor();
  const root = await page.evaluate(() => [
    document.documentElement.lang,
    document.documentElement.dataset.theme,
    getComputedStyle(document.body).backgroundColor,
  ]);
  expect(root).toEqual(["zh-CN", "dark", "rgb(15, 21, 24)"]);
  await page.context().close();
});

it("shows markup in a title as text", async () => {
  const title = "<img src=x onerror=document.title=1>";
  await stage.json("/v1/users/eve/history", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify([{ kind: "article", id: title }]),
  });
  const page = await stage.visit("/", { user: "eve" });
  await page.getByText(title, { exact: true }).waitFor();
  expect(await page.locator("main img").count()).toBe(0);
  await page.context().close();
});
