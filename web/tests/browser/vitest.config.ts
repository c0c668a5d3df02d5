import { defineConfig } from "vitest/config";

/** In a real browser against a real daemon: one at a time, with patience for a busy machine. */
export default defineConfig(({ mode }) => ({
  test: {
    dir: import.meta.dirname,
    include: [mode === "bench" ? "**/*.bench.ts" : "**/*.test.ts"],
    fileParallelism: false,
    expect: { poll: { timeout: 30_000 } },
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
}));
