// A server that asks for tokens.

import { afterAll, beforeAll, expect, it } from "vitest";
import { Stage, shoot } from "./stage.js";

let stage: Stage;
beforeAll(async () => {
  stage = await Stage.open("--set", "auth.mode=token");
});
afterAll(() => stage.close());

it("asks who it is, shows that user's history, and opens one live connection with a ticket", async () => {
  const page = await stage.visit("/");
  await page.getByText("This server asks for a token.").waitFor();
  await page.getByRole("alert").getByRole("button", { name: "Account" }).click();
  await page.getByLabel("User", { exact: true }).fill("ben");
  await page.getByLabel("Token").fill("tl_wrong");
  await page.keyboard.press("Enter");
  await page.getByText("This server asks for a token.").waitFor();
  await page.getByRole("alert").getByRole("button", { name: "Account" }).click();
  await page.getByLabel("Token").fill(stage.token ?? "");
  await shoot(page, "account-1280-en-light");
  await page.keyboard.press("Enter");
  await page.locator("[data-row]").first().waitFor();
  // The token stays in this tab; other words of the page are kept for good.
  expect(await page.evaluate(() => localStorage.getItem("tideline"))).not.toContain("tl_");
  const frames: string[] = [];
  page.on("websocket", (socket) => {
    expect(socket.url()).toMatch(/\/v1\/live\?ticket=/);
    socket.on("framesent", ({ payload }) => frames.push(String(payload)));
    socket.on("framereceived", ({ payload }) => frames.push(String(payload)));
  });
  await page.getByRole("link", { name: "Video" }).click();
  await page.waitForFunction(() => (document.querySelector("video")?.duration ?? 0) > 59);
  await page.evaluate(() => {
    document.querySelector("video")!.currentTime = 25;
  });
  const told = () => frames.map((frame) => JSON.parse(frame));
  const marks = [{ user: "ben", id: "tide", position_ms: 25_000, duration_ms: 60_000 }];
  await expect
    .poll(told)
    .toContainEqual(expect.objectContaining({ type: "ack", id: 1, accepted: 1 }));
  expect(told().find(({ type }) => type === "progress")).toMatchObject({ id: 1, marks });
  await page.context().close();
});
