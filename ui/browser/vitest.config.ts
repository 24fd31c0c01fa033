// Tests that open the pages in a real browser, against a real server.
import { defineConfig } from "vitest/config";

export default defineConfig({
  root: import.meta.dirname,
  test: {
    include: ["*.test.ts"],
    // One browser and one server at a time: the machine may be small and busy.
    fileParallelism: false,
    // Nothing is measured here: on a busy machine everything takes its time.
    testTimeout: 240_000,
    hookTimeout: 240_000,
    expect: { poll: { timeout: 60_000 } },
  },
});
