import { expect, test } from "vitest";

import {
  allowEdited,
  answered,
  changed,
  denied,
  keyed,
  lastErrorOf,
  missing,
  offerOf,
  sessionOffer,
  toggled,
} from "../../src/actions";
import type { Capabilities, Card, RequestView } from "../../src/wire";
import { ALL, card } from "../browser/sample";

const asked = (kind: RequestView["kind"], input: unknown, more: Partial<RequestView> = {}): RequestView => ({
  requestId: "r",
  key: "req_1",
  way: "hook",
  kind,
  input,
  since: 0,
  takesWords: true,
  takesChanges: true,
  ...more,
});

const able = (can: Partial<Capabilities> = {}, more: Partial<Card> = {}) =>
  card("s", "needs_you", "needs_permission", { capabilities: { ...ALL, ...can }, ...more });

const command = asked("permission", { command: "npm test", description: "t" });

test("a permission offers what its way can carry", () => {
  const offer = {
    kind: "permission",
    key: "req_1",
    scopes: [],
    kept: [],
    canExplain: true,
    canAllow: true,
  };
  expect(offerOf(able(), command)).toEqual({ ...offer, command: "npm test" });
  const kept = ["Bash(npm test:*) in this project"];
  const scopes = ["session", "always"] as const;
  expect(offerOf(able(), { ...command, scopes: [...scopes], suggestions: kept })).toMatchObject({
    scopes,
    kept,
  });
  // Whether another command is taken, and whether a denial may say why, the daemon knows.
  expect(offerOf(able(), { ...command, takesChanges: false })).toEqual(offer);
  const wordless = { ...command, takesChanges: false, takesWords: false };
  expect(offerOf(able(), wordless)).toEqual({ ...offer, canExplain: false });
  expect(offerOf(able(), asked("permission", { file_path: "/x", content: "y" }))).toEqual(offer);
});

test("what cannot be read whole cannot be allowed, and what hides nowhere is edited", () => {
  const cut = offerOf(able(), { ...command, cut: true });
  expect(cut).toMatchObject({ kind: "permission", canAllow: false });
  expect(cut).not.toHaveProperty("command");
  expect(keyed(cut, {}, "y")).toBeUndefined();
  expect(keyed(cut, {}, "n")).toBeDefined();
  const { input: _, text: __, ...silent } = command;
  expect(offerOf(able(), silent)).toMatchObject({ canAllow: false });
  const plan = offerOf(able(), { ...asked("plan", { plan: "# a" }), cut: true });
  expect(keyed(plan, {}, "y")).toBeUndefined();
  for (const hidden of ["ls \u202e", "r\u200bm", `ls${" ".repeat(500)}; rm`, "a\n\n\n\n\n\nb"]) {
    const offer = offerOf(able(), asked("permission", { command: hidden }));
    expect(offer).toMatchObject({ canAllow: true });
    expect(offer).not.toHaveProperty("command");
  }
});

test("what cannot be answered from here says why", () => {
  const { way: _, ...wayless } = command;
  expect(offerOf(able(), { ...wayless, whyNot: "Answer it in its terminal: pts/4" })).toEqual({
    kind: "none",
    why: "Answer it in its terminal: pts/4",
  });
  const why = { canApprove: "It runs elsewhere", canAnswer: "No way in" };
  expect(offerOf(able({ canApprove: false, why }), command)).toEqual({
    kind: "none",
    why: "It runs elsewhere",
  });
  expect(offerOf(able({ canAnswer: false, why }), asked("question", {}))).toMatchObject({ why: "No way in" });
  expect(offerOf(card("s", "needs_you", "idle"), wayless)).toMatchObject({ kind: "none" });
});

test("a session offers exactly what it can", () => {
  expect(sessionOffer(card("s", "needs_you", "idle"))).toEqual({
    prompt: false,
    interrupt: false,
    stop: false,
    focus: false,
    pause: false,
    goOn: false,
  });
  expect(sessionOffer(able({}, { mode: "yolo" }))).toEqual({
    prompt: true,
    interrupt: true,
    stop: true,
    focus: true,
    pause: false,
    goOn: false,
    resume: "claude --resume vendor-s",
    yolo: { on: true, locked: "its client is in mode yolo: change it there" },
    preset: { chosen: undefined },
  });
  expect(sessionOffer(able({ canYolo: false, canResume: false }))).not.toHaveProperty("yolo");
  expect(missing(able({ canStop: false, canPrompt: false, why: { canStop: "not ours" } }))).toEqual([
    ["Stop", "not ours"],
  ]);
});

test("a session of our own is paused, let go on and tried again from here", () => {
  const ours = able(
    { canPause: true, canRetry: true },
    { driven: true, drive: { state: "Error", since: 0, toolRuns: [], retry: { kind: "tool", run: "r" } } },
  );
  const offer = sessionOffer(ours);
  expect(offer).toMatchObject({ pause: true, goOn: true, retry: "Run what failed again" });
  // It is no session of a terminal, and its preset was chosen when it began.
  expect(offer).not.toHaveProperty("resume");
  expect(offer).not.toHaveProperty("preset");
  expect(lastErrorOf(able({}, { drive: { ...ours.drive!, lastError: { message: "502" } } }))).toBe("502");
  expect(lastErrorOf(ours)).toBeUndefined();
});

test("a changed command is sent with the whole input", () => {
  expect(allowEdited(command, "npm test -- one")).toEqual({
    type: "allow",
    input: { command: "npm test -- one", description: "t" },
  });
  expect(allowEdited(command, "npm test")).toEqual({ type: "allow" });
  expect(changed({ command: ["/bin/bash", "-lc", "ls"], cwd: "/" }, "ls -a")).toEqual({
    command: ["/bin/bash", "-lc", "ls -a"],
    cwd: "/",
  });
  expect(changed({ cmd: "ls" }, "pwd")).toEqual({ cmd: "pwd" });
  // Words that were put together cannot be taken apart again.
  expect(changed({ command: ["git", "commit", "-m", "a b"] }, "x")).toBeUndefined();
  expect(changed("ls", "x")).toBeUndefined();
  expect(denied("  ")).toEqual({ type: "deny" });
});

const one = { text: "Which?", options: [{ label: "A" }, { label: "B" }], several: false };
const many = { id: "q2", text: "Which ones?", options: [{ label: "C" }, { label: "D" }], several: true };

test("a form is an answer when each question has one", () => {
  expect(answered([one, many], [{ chosen: ["A"], text: "" }])).toBeUndefined();
  expect(
    answered(
      [one, many],
      [
        { chosen: ["A"], text: " mine " },
        { chosen: ["C", "D"], text: "E" },
      ],
    ),
  ).toEqual({
    type: "answer",
    answers: [
      { question: "Which?", values: ["mine"] },
      { question: "q2", values: ["C", "D", "E"] },
    ],
  });
  const both = toggled(many, toggled(many, { chosen: [], text: "x" }, "D"), "C");
  expect(both).toEqual({ chosen: ["C", "D"], text: "x" });
  expect(toggled(many, both, "D").chosen).toEqual(["C"]);
  expect(toggled(one, { chosen: ["A"], text: "x" }, "B")).toEqual({ chosen: ["B"], text: "" });
});

test("keys mean what the request in front can be told", () => {
  const permission = offerOf(able(), command);
  const plan = offerOf(able(), asked("plan", { plan: "p" }));
  const decide = (decision: unknown) => ({ type: "decide", decision });
  expect(keyed(permission, {}, "y")).toEqual(decide({ type: "allow" }));
  expect(keyed(permission, { message: "no" }, "n")).toEqual(decide({ type: "deny", message: "no" }));
  expect(keyed(permission, {}, "1")).toBeUndefined();
  expect(keyed(plan, { mode: "acceptEdits" }, "y")).toEqual(
    decide({ type: "approve_plan", mode: "acceptEdits" }),
  );
  expect(keyed(plan, {}, "n")).toEqual(decide({ type: "reject_plan" }));
  const single = { kind: "questions", key: "k", questions: [one] } as const;
  expect(keyed(single, {}, "2")).toEqual(
    decide({ type: "answer", answers: [{ question: "Which?", values: ["B"] }] }),
  );
  expect(keyed(single, {}, "3")).toBeUndefined();
  expect(keyed(single, {}, "y")).toBeUndefined();
  const form = { kind: "questions", key: "k", questions: [one, many] } as const;
  expect(keyed(form, {}, "1")).toEqual({ type: "choose", question: 0, filled: { chosen: ["A"], text: "" } });
  const begun = { filled: [{ chosen: ["A"], text: "" }] };
  expect(keyed(form, begun, "1")).toMatchObject({ question: 1, filled: { chosen: ["C"] } });
  expect(keyed(form, begun, "2", 0)).toMatchObject({ question: 0, filled: { chosen: ["B"] } });
  expect(keyed({ kind: "none", why: "" }, {}, "y")).toBeUndefined();
});
