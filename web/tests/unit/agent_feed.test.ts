import { expect, test } from "vitest";

import { AgentFeed } from "../../src/agent_feed";
import type { Piece } from "../../src/driven";
import { RECENT_CHARS_MAX } from "../../src/limits";

function piece(sessionId: string, streamId: string, seq: number, more: object = {}) {
  const told = {
    sessionId,
    streamId,
    seq,
    timestampMs: 1,
    type: "text_delta",
    payload: { text: "a" },
    ...more,
  };
  return { name: "agent:stream_event", data: JSON.stringify(told) };
}

function watched(feed: AgentFeed, sessionId: string): string[] {
  const heard: string[] = [];
  feed.watch(sessionId, {
    change: () => {},
    piece: ({ streamId, seq }: Piece) => heard.push(`${streamId} ${seq}`),
    broke: () => {},
  });
  return heard;
}

test("whoever comes in the middle of an answer gets what came of it", () => {
  const feed = new AgentFeed();
  for (const event of [
    piece("s", "t1", 1),
    piece("s", "t2", 1),
    piece("other", "t9", 1),
    piece("s", "t2", 2),
  ]) {
    feed.event(event);
  }
  const heard = watched(feed, "s");
  expect(heard).toEqual(["t2 1", "t2 2"]);
  feed.event(piece("s", "t2", 3));
  expect(heard.at(-1)).toBe("t2 3");
});

test("an answer that is complete, or cut off by a break, is not told again", () => {
  const feed = new AgentFeed();
  feed.event(piece("s", "t1", 1));
  feed.event(piece("s", "t1", 2, { type: "completed" }));
  expect(watched(feed, "s")).toEqual([]);
  feed.event(piece("s", "t2", 1));
  feed.broke();
  expect(watched(feed, "s")).toEqual([]);
});

test("what is kept is bounded, and the newest stays", () => {
  const feed = new AgentFeed();
  const text = "x".repeat(1_000);
  for (let seq = 1; seq <= (2 * RECENT_CHARS_MAX) / 1_000; seq += 1) {
    feed.event(piece("s", "t1", seq, { payload: { text } }));
  }
  const heard = watched(feed, "s");
  expect(heard.length).toBeLessThanOrEqual(RECENT_CHARS_MAX / 1_000);
  expect(heard.at(-1)).toBe(`t1 ${Math.floor((2 * RECENT_CHARS_MAX) / 1_000)}`);
});
