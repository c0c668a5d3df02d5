import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { gzipSync } from "node:zlib";

import { type Plugin, transformWithOxc } from "vite";
import { defineConfig } from "vitest/config";

/** Writes worker.js with the names of all files that the page needs when the daemon is away. */
function worker(): Plugin {
  return {
    name: "worker",
    apply: "build",
    async generateBundle(_, bundle) {
      const built = Object.values(bundle).map((file) => `/${file.fileName}`);
      const plain = readdirSync("public")
        .filter((file) => !/\.png$/.test(file))
        .map((file) => `/${file}`);
      // `/` is index.html; its own name is not an address of ours.
      const files = ["/", ...built.filter((file) => file !== "/index.html"), ...plain].sort();
      const shared = await transformWithOxc(readFileSync("src/browser_key.ts", "utf8"), "browser_key.ts");
      const source = readFileSync("src/worker.js", "utf8").replace("__BROWSER_KEY__;", () =>
        shared.code.replaceAll(/^export /gm, ""),
      );
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

/** Writes each text file a second time, packed: the server hands out the bytes as they are. */
function packed(): Plugin {
  let folder = "";
  return {
    name: "packed",
    apply: "build",
    configResolved: ({ root, build }) => {
      folder = resolve(root, build.outDir);
    },
    closeBundle: () => {
      for (const file of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
        if (!/\.(html|js|css|svg|webmanifest)$/.test(file)) continue;
        const path = join(folder, file);
        writeFileSync(`${path}.gz`, gzipSync(readFileSync(path), { level: 9 }));
      }
    },
  };
}

export default defineConfig({
  plugins: [worker(), packed()],
  oxc: { jsx: { runtime: "automatic" } },
  build: {
    target: "es2022",
    assetsInlineLimit: 0,
    // Every browser of the last years preloads modules by itself.
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rolldownOptions: {
      // "use client" at the head of lucide's files is for servers that render; there is none here.
      checks: { moduleLevelDirective: false },
    },
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
});
