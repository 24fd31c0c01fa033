// A server of its own with the demo's data, and a headless Chromium.

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { type Browser, chromium, type Page } from "playwright-core";

const ROOT = resolve(import.meta.dirname, "../..");
const BUILT = join(resolve(ROOT, process.env.CARGO_TARGET_DIR ?? "target"), "debug/tideline");
const PROGRAM = process.env.TIDELINE_PROGRAM ?? BUILT;
const CHROMIUM = process.env.TIDELINE_CHROMIUM ?? "/usr/bin/chromium";
const SHOTS = join(ROOT, "docs/ui");

/** Chromium without what it would call home for. */
const ARGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  // A page that a test writes has no address that is known to be of this machine.
  "--disable-features=LocalNetworkAccessChecks",
  "--mute-audio",
  "--autoplay-policy=no-user-gesture-required",
];

/** The longest that a browser may take for one step. */
const WAIT_MS = 60_000;

/** The end of what a server logs is kept, in case it does not start. */
const SAID_MAX = 4000;

/** How a page is opened. */
export interface View {
  width?: 1280 | 390;
  language?: "en" | "zh";
  theme?: "light" | "dark";
  user?: string;
  /** In a browser of its own, which shares nothing with the first. */
  apart?: boolean;
}

export class Stage {
  /** What went wrong in any page: scripts, policies, the console. */
  readonly faults: string[] = [];

  #apart: Promise<Browser> | undefined;

  private constructor(
    readonly base: string,
    /** Where it serves gRPC. */
    readonly grpc: string,
    /** The admin token, where the server asks for tokens. */
    readonly token: string | undefined,
    readonly browser: Browser,
    readonly stop: () => Promise<void>,
  ) {}

  static async open(...flags: string[]): Promise<Stage> {
    const data = mkdtempSync(join(tmpdir(), "tideline-ui-"));
    const free = ["--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0"];
    const server = spawn(
      PROGRAM,
      ["serve", "--demo", "--data", join(data, "d"), ...free, ...flags],
      {
        stdio: ["ignore", "pipe", "pipe"],
      },
    );
    const { base, grpc, token } = await bannerOf(server);
    return new Stage(base, grpc, token, await launch(), async () => {
      const ended = new Promise((done) => server.once("exit", done));
      server.kill("SIGTERM");
      await ended;
      rmSync(data, { recursive: true, force: true });
    });
  }

  async close(): Promise<void> {
    await Promise.all([this.browser.close(), this.#apart?.then((browser) => browser.close())]);
    await this.stop();
  }

  /** Opens a page as a new visitor. */
  async visit(path: string, view: View = {}): Promise<Page> {
    const page = await this.visitor(view);
    await page.goto(`${this.base}${path}`);
    return page;
  }

  /** A new visitor, before anything is opened. */
  async visitor(view: View = {}): Promise<Page> {
    const { width = 1280, language = "en", theme = "light", user = "demo" } = view;
    if (view.apart) this.#apart ??= launch();
    const browser = view.apart ? await this.#apart! : this.browser;
    const context = await browser.newContext({
      viewport: { width, height: width === 390 ? 844 : 800 },
      locale: language === "zh" ? "zh-CN" : "en-GB",
      colorScheme: theme,
      hasTouch: width === 390,
      timezoneId: "UTC",
    });
    await context.addInitScript((kept) => {
      // An empty page has no storage.
      if (origin !== "null" && localStorage.length === 0) localStorage.setItem("tideline", kept);
    }, JSON.stringify({ user }));
    context.setDefaultTimeout(WAIT_MS);
    const page = await context.newPage();
    page.on("pageerror", (error) => this.faults.push(String(error)));
    page.on("console", (line) => line.type() === "error" && this.faults.push(line.text()));
    return page;
  }

  /** Has the program do something with the metadata tree. */
  meta(...args: string[]): string {
    return execFileSync(PROGRAM, ["meta", "--grpc", `http://${this.grpc}`, ...args], {
      encoding: "utf8",
    });
  }

  /** What a call answers. */
  async json<T>(path: string, init?: RequestInit): Promise<T> {
    const response = await fetch(`${this.base}${path}`, init);
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return (await response.json()) as T;
  }
}

function launch(): Promise<Browser> {
  return chromium.launch({ executablePath: CHROMIUM, args: ARGS, timeout: WAIT_MS });
}

/** Takes a picture for the documents, if they are to be taken again. */
export async function shoot(page: Page, name: string): Promise<void> {
  if (!process.env.TIDELINE_SHOTS) return;
  mkdirSync(SHOTS, { recursive: true });
  await page.screenshot({ path: join(SHOTS, `${name}.png`), animations: "disabled" });
}

/** What the server prints when it is ready. */
function bannerOf(server: ChildProcess): Promise<{
  base: string;
  grpc: string;
  token: string | undefined;
}> {
  return new Promise((found, failed) => {
    let base = "";
    let grpc = "";
    let token: string | undefined;
    let said = "";
    server.stderr!.on("data", (text) => {
      said = `${said}${text}`.slice(-SAID_MAX);
    });
    server.once("error", failed);
    server.once("exit", (code) => failed(new Error(`${PROGRAM} ended with ${code}: ${said}`)));
    createInterface({ input: server.stdout! }).on("line", (line) => {
      base = /HTTP {2}(http:\S+)/.exec(line)?.[1] ?? base;
      grpc = /gRPC {2}(\S+)/.exec(line)?.[1] ?? grpc;
      token = /TIDELINE_TOKEN=(\S+)/.exec(line)?.[1] ?? token;
      if (line.startsWith("Ctrl-C")) found({ base, grpc, token });
    });
  });
}
