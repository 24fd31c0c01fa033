// What would be published: its files, and whether the readme's examples compile
// against it.

import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";

const WEB = resolve(import.meta.dirname, "..");
const UI = resolve(WEB, "..");

/** A project that has installed the package, below the players' own types. */
let project: string;
let files: string[];
beforeAll(() => {
  project = mkdtempSync(join(UI, "node_modules/.package-test-"));
  const told = execFileSync("npm", ["pack", "--json", "--pack-destination", project], {
    cwd: WEB,
    stdio: ["ignore", "pipe", "ignore"],
  });
  const [packed] = JSON.parse(String(told).slice(String(told).indexOf("[\n"))) as {
    filename: string;
    files: { path: string }[];
  }[];
  files = packed!.files.map(({ path }) => path).sort();
  const installed = join(project, "node_modules/@tideline/web");
  mkdirSync(installed, { recursive: true });
  const archive = join(project, packed!.filename.replace(/^@/, "").replace("/", "-"));
  execFileSync("tar", ["xzf", archive, "--strip-components=1", "-C", installed]);
});
afterAll(() => rmSync(project, { recursive: true, force: true }));

it("holds the modules with their types, what they are for and their licence, and no more", () => {
  const modules = readFileSync(join(WEB, "src/index.ts"), "utf8").matchAll(/"\.\/(\w+)\.js"/g);
  const names = ["index", "dplayer", "artplayer", ...[...modules].map(([, name]) => name)];
  const built = names.flatMap((name) => [
    `dist/${name}.js`,
    `dist/${name}.js.map`,
    `dist/${name}.d.ts`,
  ]);
  expect(files).toEqual([...built, "LICENSE", "README.md", "package.json"].sort());
});

it("names files that are there, and needs no other package", () => {
  const told = JSON.parse(readFileSync(join(WEB, "package.json"), "utf8"));
  const named = Object.values(told.exports as Record<string, Record<string, string>>);
  for (const file of named.flatMap((entry) => Object.values(entry))) {
    expect(files).toContain(file.replace(/^\.\//, ""));
  }
  expect(told.dependencies).toBeUndefined();
});

it("has examples in its readme that compile", () => {
  const readme = readFileSync(join(WEB, "README.md"), "utf8");
  const examples = [...readme.matchAll(/```ts\n([\s\S]*?)```/g)].map(([, code]) => code!);
  expect(examples.length).toBeGreaterThanOrEqual(4);
  // What a page that uses them has.
  const around = `
    import type { Client as OurClient } from "@tideline/web";
    declare global {
      const client: OurClient;
      const session: { token: string };
      const video: HTMLVideoElement;
      const container: HTMLDivElement;
      const url: string;
      const Artplayer: typeof import("artplayer").default;
      const artplayerPluginDanmuku: typeof import("artplayer-plugin-danmuku").default;
      class DPlayer {
        constructor(options: { container: HTMLElement; video: { url: string }; danmaku: { id: string; api: string } });
        video: HTMLVideoElement;
        danmaku: { dan: import("@tideline/web/dplayer").Dan[]; danIndex: number; draw(dan: object): void };
        on(event: string, ear: () => void): void;
      }
    }`;
  writeFileSync(join(project, "around.ts"), around);
  for (const [at, code] of examples.entries()) {
    writeFileSync(join(project, `example-${at}.ts`), `${code}\nexport {};\n`);
  }
  const compilerOptions = {
    target: "ES2022",
    lib: ["ES2022", "DOM"],
    module: "ESNext",
    moduleResolution: "bundler",
    strict: true,
    noEmit: true,
    types: [],
  };
  writeFileSync(join(project, "tsconfig.json"), JSON.stringify({ compilerOptions }));
  const tsc = join(UI, "node_modules/.bin/tsc");
  try {
    execFileSync(tsc, ["-p", project], { stdio: "pipe" });
  } catch (failure) {
    expect.fail(String((failure as { stdout: Buffer }).stdout));
  }
});

it("has connectors that can be read in one sitting", () => {
  for (const name of ["dplayer", "artplayer"]) {
    const lines = readFileSync(join(WEB, `src/${name}.ts`), "utf8").split("\n").length;
    expect(lines).toBeLessThanOrEqual(200);
  }
});
