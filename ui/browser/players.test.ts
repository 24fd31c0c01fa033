// DPlayer, and ArtPlayer with artplayer-plugin-danmuku, as npm has them, with
// the connectors of @tideline/web as they would be published.

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Room } from "./room.js";
import { Stage } from "./stage.js";

const UI = resolve(import.meta.dirname, "..");
const XSS = "<img src=x onerror=\"window.broken='yes'\">";

/** Files that pages load: a player's own, and ours. */
const FILES: Record<string, string> = {
  "dplayer.js": "node_modules/dplayer/dist/DPlayer.min.js",
  "art.js": "node_modules/artplayer/dist/artplayer.js",
  "danmuku.js": "node_modules/artplayer-plugin-danmuku/dist/artplayer-plugin-danmuku.js",
};

const SCRIPTS = {
  dplayer: (video: string) => `
    import { Client } from "./web/index.js";
    import { dplayer } from "./web/dplayer.js";
    const tideline = dplayer(new Client({ user: "ann" }), "${video}");
    window.player = new DPlayer({
      container: document.querySelector("#box"), video: { url: "/demo/tide.webm" }, volume: 0, ...tideline.options,
    });
    tideline.attach(player);
    window.list = () => player.danmaku.dan.map(({ text }) => text);`,
  artplayer: (video: string) => `
    import { Client } from "./web/index.js";
    import { artplayer } from "./web/artplayer.js";
    const tideline = artplayer(new Client({ user: "ann" }), "${video}");
    window.player = new Artplayer({
      container: "#box", url: "/demo/tide.webm", muted: true,
      plugins: [artplayerPluginDanmuku({ ...tideline.options, lockTime: 1 })],
    });
    tideline.attach(player);
    player.on("artplayerPluginDanmuku:loaded", (queue) => { window.list = () => queue.map(({ text }) => text); });`,
};
type Name = keyof typeof SCRIPTS;

const LIBRARIES: Record<Name, string[]> = {
  dplayer: ["dplayer.js"],
  artplayer: ["art.js", "danmuku.js"],
};
/** Comments in the page, and the layer that they lie in. */
const DOM: Record<Name, { item: string; layer: string }> = {
  dplayer: { item: ".dplayer-danmaku-item", layer: ".dplayer-danmaku" },
  artplayer: { item: ".art-danmuku > div[data-state]", layer: ".art-danmuku" },
};

declare global {
  interface Window {
    list?: () => string[];
    broken?: string;
    // biome-ignore lint/suspicious/noExplicitAny: the players' own
    player: any;
  }
}

let stage: Stage;
beforeAll(async () => {
  execFileSync("npx", ["tsc", "-p", "web/tsconfig.json"], { cwd: UI });
  stage = await Stage.open();
});
afterAll(async () => {
  await stage.close();
  expect(stage.faults).toEqual([]);
});

/** Opens a page with a player and nothing else. */
async function open(name: Name, { video }: Room, script = SCRIPTS[name](video)): Promise<Page> {
  const page = await stage.visitor();
  await page.route("**/players-test/**", (route) => {
    const file = new URL(route.request().url()).pathname.split("/players-test/")[1] ?? "";
    if (file === "page.html") {
      const libraries = LIBRARIES[name].map((one) => `<script src="${one}"></script>`).join("");
      const html = `<!doctype html><meta charset="utf-8"><link rel="icon" href="/icon.svg">${libraries}
        <div id="box" style="width:640px;height:360px"></div><script type="module">${script}</script>`;
      return route.fulfill({ body: html, contentType: "text/html" });
    }
    const path = FILES[file] ?? join("web/dist", file.replace(/^web\//, ""));
    return route.fulfill({ body: readFileSync(join(UI, path)), contentType: "text/javascript" });
  });
  await page.goto(`${stage.base}/players-test/page.html`);
  await page.waitForFunction(() => (window.list?.() ?? []).length > 0);
  return page;
}

const list = async (page: Page) => (await page.evaluate(() => window.list?.() ?? [])).sort();
const play = (page: Page, at: number) =>
  page.evaluate(async (at) => {
    const video = document.querySelector("video")!;
    video.muted = true;
    video.currentTime = at;
    await video.play();
  }, at);
const drawn = (page: Page, name: Name, text: string) =>
  page.evaluate(
    ([item, text]) =>
      [...document.querySelectorAll(item!)].filter((one) => one.textContent === text).length,
    [DOM[name].item, text],
  );

/** What a viewer types and sends by the player's own means. */
async function send(page: Page, name: Name, text: string): Promise<void> {
  if (name === "dplayer") {
    await page.evaluate((text) => {
      const { comment } = window.player;
      comment.show();
      document.querySelector<HTMLInputElement>(".dplayer-comment-input")!.value = text;
      comment.send();
    }, text);
    return;
  }
  await page.evaluate((text) => {
    document.querySelector<HTMLInputElement>(".apd-input")!.value = text;
    document.querySelector<HTMLElement>(".apd-send")!.click();
  }, text);
}

describe.each(["dplayer", "artplayer"] as const)("%s", (name) => {
  it("loads, shows, sends and receives: every comment once, markup as text", async () => {
    const room = new Room(stage, `sent-${name}`);
    await room.add("early", 500);
    await room.add(XSS, 10_200, { mode: "top" });
    await room.add("code", 10_300, { mode: "bas" });
    await room.add("late", 50_000);
    const [ann, ben] = [await open(name, room), await open(name, room)];
    // All but the code.
    const there = 3;
    expect(await list(ann)).toHaveLength(there);
    await Promise.all([play(ann, 10), play(ben, 10)]);
    await expect.poll(() => drawn(ann, name, XSS)).toBe(1);
    expect(await ann.evaluate(() => window.broken)).toBeUndefined();

    await send(ann, name, "hello from ann");
    await expect.poll(() => drawn(ben, name, "hello from ann")).toBe(1);
    await expect.poll(() => drawn(ann, name, "hello from ann")).toBe(1);
    expect((await room.all()).filter(({ text }) => text === "hello from ann")).toHaveLength(1);
    await room.add("from elsewhere", 55_000);
    for (const page of [ann, ben]) {
      await expect.poll(async () => (await list(page)).includes("from elsewhere")).toBe(true);
      const all = await list(page);
      expect(all.filter((text) => text === "hello from ann")).toHaveLength(1);
      expect(all.filter((text) => text === "from elsewhere")).toHaveLength(1);
      expect(all).toHaveLength(there + 2);
    }
    await ann.context().close();
    await ben.context().close();
  });

  it("draws comments that can be seen: a paused layer is made of pixels", async () => {
    const room = new Room(stage, `seen-${name}`);
    await room.add("SEEN", 10_200, { mode: "top", color: "#ff0000" });
    const page = await open(name, room);
    await play(page, 10);
    await expect.poll(() => drawn(page, name, "SEEN")).toBe(1);
    await page.evaluate(() => document.querySelector("video")!.pause());
    await page.addStyleTag({
      content:
        "#box > *, #box [class*=notice], #box [class*=control], #box [class*=state] { transition: none !important }",
    });
    const region = { x: 0, y: 0, width: 640, height: 120 };
    const shot = () => page.screenshot({ clip: region });
    let before = await shot();
    // What else moves comes to rest first.
    await expect
      .poll(
        async () => {
          const now = await shot();
          const still = now.equals(before);
          before = now;
          return still;
        },
        { timeout: 20_000 },
      )
      .toBe(true);
    await page.addStyleTag({
      content: `${DOM[name].layer} { visibility: hidden !important }
      ${DOM[name].layer} * { visibility: hidden !important }`,
    });
    expect((await shot()).equals(before)).toBe(false);
    await page.context().close();
  });
});

it("DPlayer works with nothing of ours but the address", async () => {
  const room = new Room(stage, "plain");
  await room.add("early", 500);
  await room.add(XSS, 10_200, { mode: "top", color: "#000000" });
  const script = `
    window.player = new DPlayer({
      container: document.querySelector("#box"), video: { url: "/demo/tide.webm" }, volume: 0,
      danmaku: { id: "plain", api: "/players/dplayer/", user: "ann" },
    });
    window.list = () => player.danmaku.dan.map(({ text }) => text);`;
  const page = await open("dplayer", room, script);
  await play(page, 10);
  await expect.poll(() => drawn(page, "dplayer", XSS)).toBe(1);
  await send(page, "dplayer", "hello");
  await expect.poll(() => drawn(page, "dplayer", "hello")).toBe(1);
  await expect
    .poll(async () => (await room.all()).map(({ text }) => text).sort())
    .toEqual([XSS, "early", "hello"]);
  expect(await page.evaluate(() => window.broken)).toBeUndefined();
  await page.context().close();
});

it("ArtPlayer's plugin works with nothing of ours but the address of the XML", async () => {
  const room = new Room(stage, "plain-art");
  await room.add("early", 0, { color: "#0000ff" });
  await room.add(XSS, 10_200, { mode: "top" });
  const script = `
    window.player = new Artplayer({
      container: "#box", url: "/demo/tide.webm", muted: true,
      plugins: [artplayerPluginDanmuku({ danmuku: "/players/artplayer/plain-art.xml" })],
    });
    player.on("artplayerPluginDanmuku:loaded", (queue) => { window.list = () => queue.map(({ text }) => text); });`;
  const page = await open("artplayer", room, script);
  expect(await list(page)).toEqual([XSS, "early"].sort());
  await play(page, 10);
  await expect.poll(() => drawn(page, "artplayer", XSS)).toBe(1);
  await page.context().close();
});
