// Pages with one player on them and nothing else.
//
// The players are the files that npm's packages hold: a page names the hash of
// each, and the browser runs no other bytes. The lock file names the hash of
// each package.

import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Page } from "playwright-core";
import type { Stage, View } from "./stage.js";

export const UI = resolve(import.meta.dirname, "..");

/** Where a player's file lies, and the hash that it has in npm's package. */
const FILES: Record<string, { path: string; hash: string }> = {
  "dplayer.js": {
    path: "node_modules/dplayer/dist/DPlayer.min.js",
    hash: "sha384-wQxdcYKsNUXYYfO6jvN8MG64BFabGdWcybNgEWn0ugSyIBM4TPS3C+OarTV5sIqf",
  },
  "art.js": {
    path: "node_modules/artplayer/dist/artplayer.js",
    hash: "sha384-w5IjjTXa5FVlGgCubBLyhTG2jrrNp7ktdnxNNUdVZuYwpQ5OqIab8c1gjKDD3+uO",
  },
  "danmuku.js": {
    path: "node_modules/artplayer-plugin-danmuku/dist/artplayer-plugin-danmuku.js",
    hash: "sha384-4PbC9s6PjmMZQyOIwKCKcMc0bBIZpceOY7dq73SmjVY5VIZJAsG/NNUfkbZF/sjd",
  },
};

export type Name = "dplayer" | "artplayer";

const LIBRARIES: Record<Name, string[]> = {
  dplayer: ["dplayer.js"],
  artplayer: ["art.js", "danmuku.js"],
};

/** What a page's script has at hand, whatever the player. */
const SHARED = `
  window.shown = [];
  const plain = (html) => new DOMParser().parseFromString(html, "text/html").documentElement.textContent;`;

/** Notes every comment that is put into the layer, and reads the player's own list. */
const NOTES: Record<Name, string> = {
  dplayer: `
    new MutationObserver((all) => {
      for (const { addedNodes } of all) for (const node of addedNodes) {
        if (node.matches?.(".dplayer-danmaku-item")) window.shown.push(node.textContent);
      }
    }).observe(document.querySelector(".dplayer-danmaku"), { childList: true });
    // Its list holds HTML.
    window.list = () => player.danmaku.dan.map(({ text }) => plain(text));`,
  artplayer: `
    player.on("artplayerPluginDanmuku:visible", ({ $ref }) => window.shown.push($ref.textContent));
    player.on("artplayerPluginDanmuku:loaded", (queue) => { window.list = () => queue.map(({ text }) => text); });`,
};

/** With the connector of `@tideline/web`, as it would be published. */
export const CONNECTED: Record<Name, (video: string, user: string) => string> = {
  dplayer: (video, user) => `
    import { Client } from "./web/index.js";
    import { dplayer } from "./web/dplayer.js";
    const tideline = dplayer(new Client({ user: "${user}" }), "${video}");
    window.player = new DPlayer({
      container: document.querySelector("#box"), video: { url: "/demo/tide.webm" }, volume: 0, ...tideline.options,
    });
    tideline.attach(player);`,
  artplayer: (video, user) => `
    import { Client } from "./web/index.js";
    import { artplayer } from "./web/artplayer.js";
    const tideline = artplayer(new Client({ user: "${user}" }), "${video}");
    window.player = new Artplayer({
      container: "#box", url: "/demo/tide.webm", muted: true,
      plugins: [artplayerPluginDanmuku({ ...tideline.options, lockTime: 1 })],
    });
    tideline.attach(player);`,
};

/** With nothing of ours but an address. */
export const PLAIN: Record<Name, (video: string, user: string) => string> = {
  dplayer: (video, user) => `
    window.player = new DPlayer({
      container: document.querySelector("#box"), video: { url: "/demo/tide.webm" }, volume: 0,
      danmaku: { id: "${video}", api: "/players/dplayer/", user: "${user}" },
    });`,
  artplayer: (video) => `
    window.player = new Artplayer({
      container: "#box", url: "/demo/tide.webm", muted: true,
      plugins: [artplayerPluginDanmuku({ danmuku: "/players/artplayer/${video}.xml" })],
    });`,
};

/** Comments in the page, and the layer that they lie in. */
export const DOM: Record<Name, { item: string; layer: string }> = {
  dplayer: { item: ".dplayer-danmaku-item", layer: ".dplayer-danmaku" },
  artplayer: { item: ".art-danmuku > div[data-state]", layer: ".art-danmuku" },
};

declare global {
  interface Window {
    /** The player's own list of comments. */
    list?: () => string[];
    /** Every comment that was put into the layer, as often as it was. */
    shown: string[];
    /** Set by what was to stay a text. */
    broken?: string;
    // biome-ignore lint/suspicious/noExplicitAny: the players' own
    player: any;
  }
}

/** Opens a page with a player, once it has its comments. */
export async function open(
  stage: Stage,
  name: Name,
  script: string,
  view: View = {},
): Promise<Page> {
  const page = await stage.visitor(view);
  await page.route("**/players-test/**", (route) => {
    const file = new URL(route.request().url()).pathname.split("/players-test/")[1] ?? "";
    if (file === "page.html") {
      const body = pageOf(name, `${SHARED}${script}${NOTES[name]}`);
      return route.fulfill({ body, contentType: "text/html" });
    }
    const path = FILES[file]?.path ?? join("web/dist", file.replace(/^web\//, ""));
    return route.fulfill({ body: readFileSync(join(UI, path)), contentType: "text/javascript" });
  });
  await page.goto(`${stage.base}/players-test/page.html`);
  await page.waitForFunction(() => (window.list?.() ?? []).length > 0);
  return page;
}

function pageOf(name: Name, script: string): string {
  const libraries = LIBRARIES[name].map(
    (file) => `<script src="${file}" integrity="${FILES[file]!.hash}"></script>`,
  );
  // Imports come first in a module, wherever they are written.
  return `<!doctype html><meta charset="utf-8"><link rel="icon" href="/icon.svg">${libraries.join("")}
    <div id="box" style="width:640px;height:360px"></div><script type="module">${script}</script>`;
}

/** The player's own list, sorted. */
export const list = async (page: Page) => (await page.evaluate(() => window.list?.() ?? [])).sort();

/** How often a text was put into the layer so far. */
export const drawn = (page: Page, text: string) =>
  page.evaluate((text) => window.shown.filter((one) => one === text).length, text);

/** Plays slowly, so that no comment's moment passes between two frames of a busy machine. */
export const play = (page: Page, at: number) =>
  page.evaluate(async (at) => {
    const video = document.querySelector("video")!;
    video.muted = true;
    video.playbackRate = 0.2;
    video.currentTime = at;
    await video.play();
  }, at);

/** What a viewer types and sends by the player's own means. */
export async function send(page: Page, name: Name, text: string): Promise<void> {
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
