// Builds the pages into `built/pages`, from where the server's build takes
// them. Paths in them are relative: they work below any address.
import { defineConfig } from "vitest/config";

const web = (file: string) => new URL(`./web/src/${file}.ts`, import.meta.url).pathname;

/** A server that `npm run dev` passes calls on to. */
const server = process.env.TIDELINE_SERVER ?? "http://127.0.0.1:7766";

export default defineConfig({
  base: "./",
  resolve: {
    alias: {
      "@tideline/web/dplayer": web("dplayer"),
      "@tideline/web/artplayer": web("artplayer"),
      "@tideline/web": web("index"),
    },
  },
  build: {
    outDir: "built/pages",
    emptyOutDir: true,
    target: "es2022",
    // What is packed into the pages, and under which terms.
    license: { fileName: "licenses.txt" },
  },
  server: {
    proxy: Object.fromEntries(
      ["/v1", "/players", "/openapi.json"].map((path) => [path, { target: server, ws: true }]),
    ),
  },
  test: {
    include: ["tests/**/*.test.ts", "web/tests/**/*.test.ts"],
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
