/** What the page and the daemon prove to each other. */

import { expect, test } from "vitest";

import { browserProof, daemonProof, imported } from "../../src/browser_key";

/** The daemon's test has the same figures (crates/server/src/browser_key.rs). */
test("proofs are what the daemon computes, and the key cannot be had back", async () => {
  const [host, challenge] = ["127.0.0.1:47892", "cd".repeat(16)];
  const key = await imported("ab".repeat(32));
  expect(await browserProof(key, host, challenge)).toBe(
    "c671132e9f879f87ce009e205168c0c8724ec11914ed584addc00ec59e90c6ce",
  );
  expect(await daemonProof(key, host, challenge, "0".repeat(32))).toBe(
    "e903b0940d0dc6e470c69dc3ca9f2b1713977be8d5427f92fadc35bbb3dabe31",
  );
  await expect(crypto.subtle.exportKey("raw", key)).rejects.toThrow();
});
