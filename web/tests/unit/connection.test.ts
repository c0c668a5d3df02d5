import { expect, test } from "vitest";

import { messageOf, pauseMs } from "../../src/connection";
import { EventReader } from "../../src/event_stream";

const STREAM =
  ': ping\n\nevent: snapshot\nid: 7\ndata: {"a":\ndata: 1}\n\nid: 8\r\nevent:summary\r\ndata:{}\r\n\r\nevent: empty\n\n';

test("events are the same in whatever pieces they come", () => {
  const expected = [
    { name: "snapshot", data: '{"a":\n1}', id: "7" },
    { name: "summary", data: "{}", id: "8" },
  ];
  for (let size = 1; size <= STREAM.length; size += 1) {
    const reader = new EventReader();
    const events = [];
    for (let at = 0; at < STREAM.length; at += size) events.push(...reader.read(STREAM.slice(at, at + size)));
    expect(events).toEqual(expected);
  }
});

test("an id belongs to its own event", () => {
  const events = new EventReader().read("id: 1\ndata: a\n\ndata: b\n\n");
  expect(events).toEqual([
    { name: "message", data: "a", id: "1" },
    { name: "message", data: "b" },
  ]);
});

test("a pause doubles up to a bound, and is never nothing", () => {
  expect([0, 1, 2, 3].map((attempt) => pauseMs(attempt, 0))).toEqual([500, 1000, 2000, 4000]);
  expect(pauseMs(50, 0)).toBe(15_000);
  expect(pauseMs(0, 1)).toBe(250);
});

test("events of other names are left to others", () => {
  expect(messageOf({ name: "agent:state_event", data: "{}" })).toBeUndefined();
  expect(messageOf({ name: "goodbye", data: "not json" })).toBeUndefined();
  expect(messageOf({ name: "session_removed", data: '{"sessionId":"a"}' })).toEqual({
    type: "session_removed",
    removed: { sessionId: "a" },
  });
});
