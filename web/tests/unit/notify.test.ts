/** What notifications rest on in the page: who counts as present, what a device is called. */

import { expect, test } from "vitest";

import { labelOf } from "../../src/push";
import { isLookedAt, viewOf } from "../../src/presence";

test("a page is looked at while it is seen, has the focus, and somebody is there", () => {
  const there = { visible: true, focused: true, idleMs: 1_000 };
  expect(isLookedAt(there)).toBe(true);
  expect(isLookedAt({ ...there, visible: false })).toBe(false);
  expect(isLookedAt({ ...there, focused: false })).toBe(false);
  expect(isLookedAt({ ...there, idleMs: 120_000 })).toBe(false);
});

test("a page says which cards it shows", () => {
  expect(viewOf({ page: "board" })).toEqual({ board: true });
  expect(viewOf({ page: "session", sessionId: "sess_1" })).toEqual({ board: false, session: "sess_1" });
  expect(viewOf({ page: "usage" })).toEqual({ board: false });
});

test("a device is called by its browser and its system", () => {
  const chrome =
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/148.0 Safari/537.36";
  expect(labelOf(chrome)).toBe("Chrome on Linux");
  expect(labelOf(chrome.replace("X11; Linux x86_64", "Linux; Android 16; Pixel"))).toBe("Chrome on Android");
  expect(labelOf("Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) Version/19.0 Safari/604.1")).toBe(
    "Safari on iPhone",
  );
  expect(labelOf("Mozilla/5.0 (Macintosh; Intel Mac OS X 15.0; rv:150.0) Firefox/150.0")).toBe(
    "Firefox on a Mac",
  );
  expect(labelOf("curl")).toBe("A browser on a device");
});
