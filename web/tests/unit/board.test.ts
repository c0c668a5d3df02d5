import { expect, test } from "vitest";

import {
  apply,
  canBeDismissed,
  EMPTY,
  filtered,
  grouped,
  subStateCounts,
  titleOf,
  withHeld,
} from "../../src/board";
import type { Card, Group, Summary } from "../../src/wire";
import { NOTHING } from "../browser/sample";

function card(sessionId: string, group: Group, state: string, since: number, more: Partial<Card> = {}): Card {
  return {
    sessionId,
    harness: "codex",
    vendorId: `v-${sessionId}`,
    agentState: { group, state, label: state, confidence: 1, source: "hook", rule: "", since, evidence: [] },
    monitorView: { state: "idle" },
    usage: {},
    capabilities: NOTHING,
    requests: [],
    subagents: [],
    driven: false,
    startedAt: since,
    lastSignal: since,
    unrecognised: 0,
    ...more,
  };
}

const summary = (needsYouCount: number): Summary => ({
  needsYouCount,
  autonomousCount: 0,
  deliveredCount: 0,
});

const ids = (cards: readonly Card[]) => cards.map((each) => each.sessionId);

test("who waits comes by urgency, then the longest wait; others the newest first", () => {
  const states = [
    "needs_permission",
    "awaiting_input",
    "usage_limit",
    "awaiting_approval",
    "budget_exceeded",
  ];
  const rest = ["paused", "interrupted", "somebodys_own", "idle"];
  const expected = [...states, ...rest].map((state) => card(state, "needs_you", state, 5));
  const older = card("older", "needs_you", "error", 1);
  const sorted = grouped([...expected.toReversed(), older]);
  expect(ids(sorted.needs_you)).toEqual([
    "needs_permission",
    "awaiting_input",
    "older",
    "usage_limit",
    "awaiting_approval",
    "budget_exceeded",
    "paused",
    "interrupted",
    "somebodys_own",
    "idle",
  ]);
  for (const group of ["autonomous", "delivered"] as const) {
    const both = grouped([card("old", group, "x", 1), card("new", group, "y", 2)]);
    expect(ids(both[group])).toEqual(["new", "old"]);
  }
});

test("messages are applied in their order, and a snapshot replaces everything", () => {
  const [a, b] = [card("a", "autonomous", "thinking", 1), card("b", "autonomous", "thinking", 1)];
  const board = apply(EMPTY, [
    { type: "session_changed", card: a },
    { type: "snapshot", list: { sessions: [b], summary: summary(1) } },
    { type: "session_changed", card: a },
    { type: "session_removed", removed: { sessionId: "b" } },
    { type: "session_removed", removed: { sessionId: "nobody" } },
    { type: "summary", summary: summary(2) },
  ]);
  expect([...board.cards.keys()]).toEqual(["a"]);
  expect(board.summary).toEqual(summary(2));
  expect(EMPTY.cards.size).toBe(0);
  expect(apply(board, [{ type: "summary", summary: summary(3) }]).cards).toBe(board.cards);
});

test("sub-states are counted, the most first", () => {
  const cards = ["idle", "error", "error"].map((state, index) => card(String(index), "needs_you", state, 1));
  expect(subStateCounts(cards)).toEqual([
    { state: "error", count: 2 },
    { state: "idle", count: 1 },
  ]);
});

test("a filter wants every word, anywhere", () => {
  const cards = [
    card("a", "needs_you", "idle", 1, { title: "Fix Login", cwd: "/w/atlas", branch: "main" }),
    card("b", "needs_you", "idle", 1, { title: "Fix logout", cwd: "/w/site" }),
  ];
  expect(ids(filtered(cards, "fix ATLAS"))).toEqual(["a"]);
  expect(ids(filtered(cards, "  "))).toEqual(["a", "b"]);
  expect(ids(filtered(cards, "codex logout"))).toEqual(["b"]);
});

test("the title counts who waits", () => {
  expect([titleOf(summary(0)), titleOf(summary(3))]).toEqual(["Quarterdeck", "(3) Quarterdeck"]);
});

test("what works or was delivered by itself is not dismissed", () => {
  const states = [
    ["needs_you", "idle"],
    ["autonomous", "thinking"],
    ["delivered", "task_complete"],
    ["delivered", "session_ended"],
  ] as const;
  expect(states.map(([group, state]) => canBeDismissed(card("a", group, state, 1)))).toEqual([
    true,
    false,
    false,
    true,
  ]);
});

test("a layer's wish moves a card within its group, and never out of it", () => {
  const wished = (sessionId: string, urgency: number) => {
    const plain = card(sessionId, "needs_you", "idle", 1);
    return { ...plain, agentState: { ...plain.agentState, urgency } };
  };
  const cards = [
    wished("last", -1),
    card("permission", "needs_you", "needs_permission", 1),
    wished("first", 1),
  ];
  expect(ids(grouped(cards).needs_you)).toEqual(["first", "permission", "last"]);
});

test("a card that is typed in keeps its place, whatever it became", () => {
  const groups = grouped([
    card("a", "needs_you", "idle", 1),
    card("c", "needs_you", "idle", 3),
    card("typed", "autonomous", "thinking", 9),
  ]);
  expect(withHeld(groups, undefined)).toBe(groups);
  const held = withHeld(groups, { sessionId: "typed", group: "needs_you", index: 1 });
  expect(ids(held.needs_you)).toEqual(["a", "typed", "c"]);
  expect(held.needs_you[1]?.agentState.group).toBe("autonomous");
  expect(held.autonomous).toEqual([]);
  expect(withHeld(groups, { sessionId: "gone", group: "needs_you", index: 0 })).toBe(groups);
});
