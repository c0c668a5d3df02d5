import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";

import { defineConfig, type Plugin } from "vite";

/** Writes worker.js with the names of all files that the page needs when the daemon is away. */
function worker(): Plugin {
  return {
    name: "worker",
    apply: "build",
    generateBundle(_, bundle) {
      const built = Object.values(bundle).map((file) => `/${file.fileName}`);
      const plain = readdirSync("public").filter((file) => !/\.png$/.test(file)).map((file) => `/${file}`);
      // `/` is index.html; its own name is not an address of ours.
      const files = ["/", ...built.filter((file) => file !== "/index.html"), ...plain].sort();
      const source = readFileSync("src/worker.js", "utf8");
      const hash = createHash("sha256").update(source).update(files.join("\n"));
      for (const file of readdirSync("public")) hash.update(readFileSync(`public/${file}`));
      hash.update(readFileSync("index.html"));
      const filled = source
        .replace("__FILES__", JSON.stringify(files))
        .replace("__CACHE__", JSON.stringify(`page-${hash.digest("hex").slice(0, 12)}`));
      this.emitFile({ type: "asset", fileName: "worker.js", source: filled });
    },
  };
}

export default defineConfig({
  plugins: [worker()],
  oxc: { jsx: { runtime: "automatic" } },
  build: {
    target: "es2022",
    assetsInlineLimit: 0,
    // Every browser of the last years preloads modules by itself.
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  server: {
    // `qd serve` beside `npm run dev`; QD_TOKEN is what `qd token --scope operate` prints.
    proxy: {
      "/api": {
        target: process.env["QD_URL"] ?? "http://127.0.0.1:47892",
        changeOrigin: true,
        headers: process.env["QD_TOKEN"] ? { authorization: `Bearer ${process.env["QD_TOKEN"]}` } : {},
        configure: (proxy) => proxy.on("proxyReq", (request) => request.removeHeader("origin")),
      },
    },
  },
  test: { include: ["tests/unit/**/*.test.{ts,tsx}"] },
} as Parameters<typeof defineConfig>[0]);
