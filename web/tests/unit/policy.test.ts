import { expect, test } from "vitest";

import { sessionOffer } from "../../src/actions";
import { linesOf } from "../../src/card_lines";
import { policyChip } from "../../src/policy";
import type { Capabilities, Card, PolicyView } from "../../src/wire";
import { ALL, card, NOTHING } from "../browser/sample";

const under = (policy?: Partial<PolicyView>, can: Partial<Capabilities> = {}, more: Partial<Card> = {}) =>
  card("s", "autonomous", "thinking", {
    capabilities: { ...ALL, canResume: false, ...can },
    ...(policy ? { policy: { preset: "manual", rules: 0, ...policy } } : {}),
    ...more,
  });

const text = (each: Card) => policyChip(each)?.text;

test("the chip says what is effective, and nothing where all is asked", () => {
  expect(policyChip(under())).toBeUndefined();
  expect(policyChip(under({ from: "session" }))).toBeUndefined();
  expect(policyChip(under({ yoloForbidden: true }))).toBeUndefined();
  expect(text(under({ preset: "careful", from: "project" }))).toBe("careful");
  expect(text(under({ preset: "auto-edit", rules: 3 }))).toBe("auto-edit, 3 rules");
  expect(text(under({ rules: 1 }))).toBe("1 rule");
  expect(policyChip(under({ preset: "yolo", from: "session", rules: 2 }))).toEqual({
    text: "YOLO: answers everything yes",
    title:
      "YOLO: answers everything yes, chosen for this session. 2 rules of yours and its repository's go first.",
    loud: true,
  });
  expect(policyChip(under({ preset: "careful", from: "global" }))?.title).toContain("for all sessions");
});

test("what no answer can reach is not said to be in effect", () => {
  const why = { canYolo: "its client takes no approval from outside" };
  expect(policyChip(under({ preset: "yolo", from: "global" }, { canYolo: false, why }))).toEqual({
    text: "YOLO (not in effect)",
    title: `YOLO: answers everything yes, for all sessions, in policy.toml. Not in effect: ${why.canYolo}.`,
    loud: false,
  });
  const ended = card("s", "delivered", "session_ended", { policy: { preset: "yolo", rules: 1 } });
  expect(policyChip(ended)).toBeUndefined();
});

test("YOLO is on by the preset or by the client's own mode, which only the client changes", () => {
  expect(sessionOffer(under({ preset: "yolo" })).yolo).toEqual({ on: true });
  expect(sessionOffer(under()).yolo).toEqual({ on: false });
  expect(sessionOffer(under(undefined, {}, { mode: "bypassPermissions" })).yolo).toEqual({
    on: true,
    locked: "its client is in mode bypassPermissions: change it there",
  });
  const codex = { harness: "codex", mode: "never" } as const;
  expect(sessionOffer(under(undefined, {}, codex)).yolo).toEqual({ on: true });
  expect(sessionOffer(under(undefined, { canInterrupt: false }, codex)).yolo).toHaveProperty("locked");
});

test("a preset is offered where an answer of ours could reach the agent", () => {
  expect(sessionOffer(under()).preset).toEqual({ chosen: undefined });
  expect(sessionOffer(under({ preset: "careful", from: "project" })).preset).toEqual({ chosen: undefined });
  expect(sessionOffer(under({ preset: "careful", from: "session" })).preset).toEqual({ chosen: "careful" });
  const why = { canYolo: "a file of its project forbids it" };
  const forbidden = under({ yoloForbidden: true }, { canYolo: false, why });
  expect(sessionOffer(forbidden).preset).toEqual({ chosen: undefined, noYolo: why.canYolo });
  expect(sessionOffer({ ...forbidden, harness: "gemini_cli" })).not.toHaveProperty("preset");
  expect(sessionOffer(under({ preset: "careful" }, { canYolo: false }))).not.toHaveProperty("preset");
});

test("the palette has a line for what is offered, and asks before it stops or lets go", () => {
  const texts = (each: Card) => linesOf(each).map((line) => line.text.replace(": Session s", ""));
  expect(texts(under({ preset: "careful", from: "session" }))).toEqual([
    "Reply",
    "Interrupt",
    "Stop",
    "YOLO on",
    "Policy as the project has it",
    "Policy manual",
    "Policy careful",
    "Policy auto-edit",
  ]);
  expect(texts(under({ preset: "yolo" }))).toContain("YOLO off");
  expect(texts(card("s", "autonomous", "thinking", { capabilities: NOTHING }))).toEqual([]);
  const asks = linesOf(under()).filter(({ then }) => then !== undefined);
  expect(asks.map(({ then }) => then!.map((line) => line.text.replace(": Session s", "")))).toEqual([
    ["No, leave it as it is", "Yes, stop"],
    ["No, leave it as it is", "Yes, answer everything yes"],
  ]);
  const spent = card("s", "needs_you", "budget_exceeded", { capabilities: NOTHING });
  expect(texts(spent)).toEqual(["Let it go on"]);
});
