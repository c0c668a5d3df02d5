import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

import { duration, money, shortDuration, tokens, words } from "../../src/amount";
import { asksNobody, harnessName } from "../../src/harness";
import { codeIn } from "../../src/pages/sign_in_page";
import { routeOf, sessionPath } from "../../src/route";
import { piecesOf } from "../../src/snippet";
import { segments, shares, timeIn } from "../../src/spans";
import { iconOf, LAYER_ICONS, subStateIcon } from "../../src/sub_state";
import { opened, withNewer, withOlder } from "../../src/transcript";
import { dayOf, daysUntil, everyDay, roundUp } from "../../src/usage_days";
import type { Card, GroupSpan, TranscriptEntry } from "../../src/wire";

test("the words that were looked for stand out of a snippet, however it is cut", () => {
  const spelled = (snippet: string) =>
    piecesOf(snippet).map(({ text, isFound }) => (isFound ? `[${text}]` : text));
  expect(spelled("the \u0002zebra\u0003 and \u0002zebras\u0003")).toEqual([
    "the ",
    "[zebra]",
    " and ",
    "[zebras]",
  ]);
  expect(spelled("cut \u0002zeb")).toEqual(["cut ", "[zeb]"]);
  expect(spelled("\u0003odd")).toEqual(["\u0003odd"]);
  expect(spelled("")).toEqual([]);
});

test("times, tokens and money are short", () => {
  expect([0, 59_999, 60_000, 3_599_999, 3_900_000, 90_000_000, -5].map(duration)).toEqual([
    "0s",
    "59s",
    "1m",
    "59m",
    "1h 05m",
    "1d 1h",
    "0s",
  ]);
  expect([12, 4_230, 42_000, 125_000].map(shortDuration)).toEqual(["12 ms", "4.2s", "42s", "2m 05s"]);
  expect([860, 1_000, 12_440, 999_499, 999_500, 3_140_000, 250e6, 1.2e9].map(tokens)).toEqual([
    "860",
    "1.0k",
    "12.4k",
    "999k",
    "1.0M",
    "3.1M",
    "250M",
    "1.2B",
  ]);
  expect([money(0), money(0.0031), money(12.3), money(1204.6), money(1, true)]).toEqual([
    "$0.00",
    "$0.0031",
    "$12.30",
    "$1,205",
    "~$1.00",
  ]);
  expect(words("needs_permission")).toBe("Needs permission");
});

test("each page has its address, and back", () => {
  const id = "sess/ä b";
  expect(routeOf(sessionPath(id))).toEqual({ page: "session", sessionId: id });
  expect(
    ["/", "/usage", "/history", "/sign-in", "/x", "/sessions/", "/sessions/%"].map(
      (path) => routeOf(path).page,
    ),
  ).toEqual(["board", "usage", "history", "sign_in", "nowhere", "nowhere", "nowhere"]);
});

test("a code is found in a link and by itself", () => {
  expect(["#abc", "http://127.0.0.1:1/sign-in#abc", " abc "].map(codeIn)).toEqual(["abc", "abc", "abc"]);
});

test("agents are called by their names, and open modes stand out", () => {
  expect(["claude_code", "gemini-cli", "constructor"].map(harnessName)).toEqual([
    "Claude Code",
    "Gemini CLI",
    "Constructor",
  ]);
  expect(["default", "plan", "bypassPermissions", "yolo", "danger-full-access"].map(asksNobody)).toEqual([
    false,
    false,
    true,
    true,
    true,
  ]);
});

const entry = (id: string, text: string): TranscriptEntry => ({ id, role: "assistant", text });

test("pages of a transcript are put together, each entry once", () => {
  const first = opened({ entries: [entry("3", "c")], before: "b3", after: "a3", more: true });
  const older = withOlder(first, { entries: [entry("1", "a"), entry("2", "b")], before: "b1", more: false });
  expect(older).toEqual({ entries: [entry("1", "a"), entry("2", "b"), entry("3", "c")], after: "a3" });
  const newer = withNewer(older, { entries: [entry("3", "c!"), entry("4", "d")], after: "a4", more: false });
  expect(newer).toEqual({
    entries: [entry("1", "a"), entry("2", "b"), entry("3", "c!"), entry("4", "d")],
    after: "a4",
  });
  expect(withNewer(newer, { entries: [], more: false })).toEqual(newer);
});

test("time in groups adds up, and lies where it was", () => {
  const spans: GroupSpan[] = [
    { group: "autonomous", state: "thinking", from: 0, to: 60 },
    { group: "needs_you", state: "idle", from: 60, to: 80 },
    { group: "autonomous", state: "acting", from: 80 },
  ];
  expect(timeIn(spans, 100)).toEqual({ needs_you: 20, autonomous: 80, delivered: 0 });
  expect(segments(spans, 100).map(({ start, width }) => [start, width])).toEqual([
    [0, 60],
    [60, 20],
    [80, 20],
  ]);
  expect(shares(timeIn(spans, 100)).map(({ start, width }) => [start, width])).toEqual([
    [0, 20],
    [20, 80],
    [100, 0],
  ]);
});

test("days without use are days too", () => {
  const days = daysUntil(new Date(2026, 2, 2, 9).getTime(), 3);
  expect(days.map(dayOf)).toEqual(["2026-02-28", "2026-03-01", "2026-03-02"]);
  const row = {
    key: "2026-03-01",
    inputTokens: 1,
    outputTokens: 1,
    cacheCreationTokens: 0,
    cacheReadTokens: 0,
    totalTokens: 2,
    totalCost: 3,
    estimated: false,
  };
  expect(everyDay([row], days).map((day) => day.cost)).toEqual([0, 3, 0]);
  expect([0, 0.2, 7, 31, 1000].map(roundUp)).toEqual([1, 0.2, 8, 40, 1000]);
});

test("every icon that the operator's page names has a picture, and an unknown one falls back", () => {
  const page = readFileSync(new URL("../../../docs/layers.md", import.meta.url), "utf8");
  const list = page.split("`icon` is one of:")[1]?.trim().split("\n")[0] ?? "";
  expect(list.split(" ").map((name) => name.replaceAll("`", ""))).toEqual(Object.keys(LAYER_ICONS).sort());
  const shown = (icon?: string) =>
    iconOf({ icon, agentState: { group: "autonomous", state: "acting" } } as unknown as Card);
  expect(shown("tests")).toBe(LAYER_ICONS.tests);
  expect([shown(), shown("unicorn"), shown("toString")]).toEqual(
    Array(3).fill(subStateIcon("autonomous", "acting")),
  );
});
