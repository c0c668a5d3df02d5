import { expect, test } from "vitest";

import { withoutBlankRuns } from "../../src/diff";
import { READ_MS_MIN, READINGS_MAX } from "../../src/limits";
import { Readings } from "../../src/readings";
import type { RequestView } from "../../src/wire";

const request = (key: string, revision = "1", more: Partial<RequestView> = {}): RequestView => ({
  key,
  revision,
  requestId: key,
  kind: "permission",
  since: 0,
  takesWords: true,
  takesChanges: true,
  ...more,
});

test("a request is ready a moment after the whole of it was on the screen", () => {
  let now = 1_000;
  const readings = new Readings(() => now);
  const first = request("req_1");
  expect(readings.of(first)).toBe("unread");
  readings.shown(first);
  now += READ_MS_MIN;
  expect(readings.of(first)).toBe("unread");
  readings.whole(first);
  expect(readings.of(first)).toBe("fresh");
  now += READ_MS_MIN;
  expect(readings.of(first)).toBe("ready");
  // The same key asks for something else: nothing of that was read.
  const other = request("req_1", "2");
  expect([readings.of(other), readings.isSettled(other)]).toEqual(["unread", false]);
  // It was read once, and comes back in the place of another one.
  readings.gone(first);
  expect(readings.of(first)).toBe("unread");
  readings.shown(first);
  expect([readings.of(first), readings.isSettled(first)]).toEqual(["fresh", false]);
  now += READ_MS_MIN;
  expect([readings.of(first), readings.isSettled(first)]).toEqual(["ready", true]);
});

test("what was cut is never ready, a question needs no scroll, and little is remembered", () => {
  let now = 0;
  const readings = new Readings(() => now);
  const [cut, asks] = [request("a", "1", { cut: true }), request("b", "1", { kind: "question" })];
  for (const each of [cut, asks]) readings.shown(each);
  readings.whole(cut);
  now += READ_MS_MIN;
  expect([readings.of(cut), readings.of(asks)]).toEqual(["cut", "ready"]);
  const [old, fresh] = [request("old"), request("fresh")];
  for (const each of [old, fresh]) readings.shown(each);
  readings.whole(old);
  for (let nth = 0; nth < READINGS_MAX; nth += 1) readings.whole(request(`r${nth}`));
  readings.whole(fresh);
  now += READ_MS_MIN;
  expect([readings.of(old), readings.of(fresh)]).toEqual(["unread", "ready"]);
});

test("many blank lines of a change are one", () => {
  const blank = (mark: "added" | "removed") => ({ mark, text: " " }) as const;
  const line = { mark: "added", text: "rm -rf ~" } as const;
  const many = [...Array<ReturnType<typeof blank>>(78).fill(blank("added")), line];
  expect(withoutBlankRuns(many)).toEqual([{ mark: "added", text: "", blanks: 78 }, line]);
  const few = [blank("added"), blank("added"), blank("added"), blank("removed"), line];
  expect(withoutBlankRuns(few)).toEqual(few);
});
