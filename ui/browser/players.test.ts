// DPlayer, and ArtPlayer with artplayer-plugin-danmuku, as npm has them: with
// the connectors of @tideline/web, and with nothing of ours but an address.

import { execFileSync } from "node:child_process";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CONNECTED, DOM, drawn, list, type Name, open, PLAIN, play, send, UI } from "./players.js";
import { Room, TRAPS } from "./room.js";
import { Stage } from "./stage.js";

let stage: Stage;
beforeAll(async () => {
  execFileSync("npx", ["tsc", "-p", "web/tsconfig.json"], { cwd: UI });
  stage = await Stage.open();
});
afterAll(async () => {
  await stage.close();
  expect(stage.faults).toEqual([]);
});

const NAMES = ["dplayer", "artplayer"] as const;

/** Comments at ten seconds that no player may take for more than texts. */
async function trapped(video: string): Promise<Room> {
  const room = new Room(stage, video);
  await room.add("early", 500);
  for (const [at, text] of TRAPS.entries()) {
    const mode = ["top", "bottom"][at % 2];
    await room.add(text, 10_300, { mode, color: at === 1 ? "#000000" : "#ffffff" });
  }
  // Its code would be shown as text.
  await room.add("code", 10_400, { mode: "bas" });
  await room.add("late", 50_000);
  return room;
}

const SEEN = [...TRAPS, "early", "late"].sort();

/** Every trap is drawn once, as it was written, and did nothing. */
async function drawsTraps(page: Page, name: Name): Promise<void> {
  for (const text of TRAPS) await expect.poll(() => drawn(page, text)).toBe(1);
  expect(await page.evaluate(() => window.broken)).toBeUndefined();
  const made = `${DOM[name].layer} :is(img, script, b)`;
  expect(await page.locator(made).count()).toBe(0);
}

describe.each(NAMES)("%s", (name) => {
  it("loads and shows every comment once, whatever it looks like, as text", async () => {
    await trapped(`shown-${name}`);
    const page = await open(stage, name, CONNECTED[name](`shown-${name}`, "ann"));
    expect(await list(page)).toEqual(SEEN);
    await play(page, 10);
    await drawsTraps(page, name);
    await page.context().close();
  });

  it("sends and receives between two browsers: each comment once, the sender's too", async () => {
    const room = await trapped(`sent-${name}`);
    const [ann, ben] = await Promise.all([
      open(stage, name, CONNECTED[name](room.video, "ann")),
      open(stage, name, CONNECTED[name](room.video, "ben"), { apart: true }),
    ]);
    await Promise.all([play(ann, 20), play(ben, 20)]);
    const said = '<i>hello</i> from ann & "co"';
    await send(ann, name, said);
    for (const page of [ben, ann]) await expect.poll(() => drawn(page, said)).toBe(1);
    await send(ben, name, "and from ben");
    for (const page of [ann, ben]) await expect.poll(() => drawn(page, "and from ben")).toBe(1);
    // What comes last has come to both: no copy of the others is under way.
    await room.add("from elsewhere", 55_000);
    const all = [...SEEN, said, "and from ben", "from elsewhere"].sort();
    for (const page of [ann, ben]) {
      await expect.poll(() => list(page)).toEqual(all);
      expect(await drawn(page, said)).toBe(1);
      expect(await drawn(page, "and from ben")).toBe(1);
      expect(await page.locator(`${DOM[name].layer} i`).count()).toBe(0);
    }
    const kept = async () => (await room.all()).map(({ text }) => text).sort();
    await expect.poll(kept).toEqual(all);
    await ann.context().close();
    await ben.context().close();
  });

  it("draws comments that can be seen: a paused layer is made of pixels", async () => {
    const room = new Room(stage, `seen-${name}`);
    await room.add("SEEN", 10_300, { mode: "top", color: "#ff0000" });
    const page = await open(stage, name, CONNECTED[name](room.video, "ann"));
    await play(page, 10);
    await expect.poll(() => drawn(page, "SEEN")).toBe(1);
    await page.evaluate(() => document.querySelector("video")!.pause());
    await page.addStyleTag({
      content: `#box > *, #box [class*=notice], #box [class*=control], #box [class*=state] { transition: none !important }
        .unseen, .unseen * { visibility: hidden !important }`,
    });
    const clip = { x: 0, y: 0, width: 640, height: 120 };
    const shot = () => page.screenshot({ clip });
    const layer = page.locator(DOM[name].layer).first();
    let before = await shot();
    // What else moves comes to rest first.
    await expect
      .poll(async () => {
        const now = await shot();
        const still = now.equals(before);
        before = now;
        return still;
      })
      .toBe(true);
    await layer.evaluate((layer) => layer.classList.add("unseen"));
    expect((await shot()).equals(before)).toBe(false);
    // It was the layer, and nothing else.
    await layer.evaluate((layer) => layer.classList.remove("unseen"));
    expect((await shot()).equals(before)).toBe(true);
    await page.context().close();
  });
});

it("DPlayer works with nothing of ours but the address", async () => {
  const room = await trapped("plain");
  const page = await open(stage, "dplayer", PLAIN.dplayer("plain", "ann"));
  expect(await list(page)).toEqual(SEEN);
  await play(page, 10);
  await drawsTraps(page, "dplayer");
  await send(page, "dplayer", "hello & all");
  await expect.poll(() => drawn(page, "hello & all")).toBe(1);
  const sent = async () => (await room.all()).filter(({ text }) => text === "hello & all").length;
  await expect.poll(sent).toBe(1);
  // Others have it when they open the video.
  const other = await open(stage, "dplayer", PLAIN.dplayer("plain", "ben"), { apart: true });
  expect(await list(other)).toEqual([...SEEN, "hello & all"].sort());
  await page.context().close();
  await other.context().close();
});

it("ArtPlayer's plugin works with nothing of ours but the address of the XML", async () => {
  await trapped("plain-art");
  const page = await open(stage, "artplayer", PLAIN.artplayer("plain-art", "ann"));
  expect(await list(page)).toEqual(SEEN);
  await play(page, 10);
  await drawsTraps(page, "artplayer");
  await page.context().close();
});

it("no page runs a player that is not npm's", async () => {
  const page = await stage.visitor();
  const faults = stage.faults.length;
  await page.route("**/players-test/page.html", (route) =>
    route.fulfill({
      contentType: "text/html",
      body: `<link rel="icon" href="/icon.svg"><script integrity="sha384-${"A".repeat(64)}" src="/players-test/x.js"></script>`,
    }),
  );
  await page.route("**/players-test/x.js", (route) =>
    route.fulfill({ body: "window.broken = 'ran'", contentType: "text/javascript" }),
  );
  await page.goto(`${stage.base}/players-test/page.html`);
  expect(await page.evaluate(() => window.broken)).toBeUndefined();
  expect(stage.faults.splice(faults).join()).toContain("integrity");
  await page.context().close();
});
