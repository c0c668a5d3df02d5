import { describe, expect, test } from "vitest";

import {
  type Conversation,
  NOTHING_SAID,
  type Past,
  type Step,
  withChange,
  withoutLive,
  withPast,
  withStreamed,
} from "../../src/conversation";
import { batchOf, type Change, type Piece, retryAfterMs } from "../../src/driven";
import { type LiveAnswer, withPiece } from "../../src/live_answer";
import { GAP_MS_MAX, PIECES_HELD_MAX, STEPS_MAX } from "../../src/limits";

const piece = (seq: number, type: string, payload: Piece["payload"], more: Partial<Piece> = {}): Piece => ({
  sessionId: "sess_1",
  streamId: "turn_1",
  seq,
  timestampMs: 1_000,
  type,
  payload,
  ...more,
});

const word = (seq: number, text: string, more: Partial<Piece> = {}) =>
  piece(seq, "text_delta", { text }, more);

const heard = (...pieces: Piece[]) => pieces.reduce(withStreamed, NOTHING_SAID).live;

describe("an answer that comes in pieces", () => {
  test("is put together in the order of their numbers", () => {
    const live = heard(word(0, "a"), word(2, "c"), word(1, "b"), word(1, "b"), word(3, "d"));
    expect(live).toMatchObject({ text: "abcd", lost: false });
    expect(live?.held.size).toBe(0);
  });

  test("waits for a piece that is missing, and not for ever", () => {
    const gap = [word(0, "a"), word(2, "c")];
    expect(heard(...gap)).toMatchObject({ text: "a", lost: false });
    const late = { timestampMs: 1_000 + GAP_MS_MAX };
    expect(heard(...gap, word(3, "d", late))).toMatchObject({ text: "acd", lost: true });
  });

  test("goes on over a gap that holds up too much", () => {
    const many = Array.from({ length: PIECES_HELD_MAX + 1 }, (_, nth) => word(nth + 2, "x"));
    const live = heard(word(0, "a"), ...many);
    expect(live).toMatchObject({ text: `a${"x".repeat(many.length)}`, lost: true });
  });

  test("takes nothing in after it is complete", () => {
    const done = piece(1, "completed", { reason: "stop" });
    const all = [word(0, "a"), done, word(2, "b")];
    expect(all.reduce<LiveAnswer | undefined>(withPiece, undefined)).toMatchObject({ text: "a", next: 2 });
    const { steps, live } = all.reduce(withStreamed, NOTHING_SAID);
    expect(steps).toMatchObject([{ kind: "answer", id: "turn_1", text: "a" }]);
    expect(live).toBeUndefined();
  });

  test("says that its beginning is not there when it is met in the middle", () => {
    expect(heard(word(7, "x"))).toMatchObject({ text: "x", lost: true });
  });

  test("begins again with the next turn, and with the same one after it failed", () => {
    const failed = [word(0, "a"), piece(1, "error", { message: "overloaded" })];
    expect(heard(...failed)).toMatchObject({ text: "a", ended: { how: "failed", why: "overloaded" } });
    expect(heard(...failed, word(2, "b"))).toMatchObject({ text: "b" });
    expect(heard(...failed, word(0, "b", { streamId: "turn_2" }))).toMatchObject({
      turn: "turn_2",
      text: "b",
    });
  });

  test("begins a paragraph after a tool of the agent's own", () => {
    const ran = piece(2, "tool_call_completed", { callId: "c" });
    expect(heard(word(1, "I look."), ran, word(3, "It is"), word(4, " there."))?.text).toBe(
      "I look.\n\nIt is there.",
    );
  });

  test("holds thoughts and calls beside its text", () => {
    const call = (seq: number, argumentsDelta: string) =>
      piece(seq, "tool_call_delta", { callId: "c", toolName: "bash", argumentsDelta });
    const live = heard(
      piece(0, "thinking_delta", { text: "hm" }),
      call(1, '{"com'),
      call(2, 'mand"'),
      piece(3, "x", {}),
    );
    expect(live).toMatchObject({
      thinking: "hm",
      calls: [{ callId: "c", name: "bash", text: '{"command"' }],
      next: 4,
    });
  });
});

const about = { eventId: "e", timestampMs: 30, sessionId: "sess_1" };

const tool = (status: string, more: object = {}): Change =>
  ({
    ...about,
    type: "tool_lifecycle",
    runId: "run_1",
    callId: "call_1",
    toolName: "bash",
    status,
    attempt: 1,
    startedAtMs: 30,
    ...more,
  }) as Change;

const call = { callId: "call_1", name: "bash", arguments: { command: "make" } };

const MESSAGES = [
  { from: "operator", at: 10, text: "Build it" },
  { from: "agent", at: 20, turn: "turn_1", text: "I will.", calls: [call] },
];

const past = (more: Partial<Past> = {}): Past => ({
  state: { kind: "ExecutingTools" },
  messages: MESSAGES,
  messagesLen: MESSAGES.length,
  notes: [],
  ...more,
});

const told = ({ steps }: Conversation) =>
  steps.map((step: Step) =>
    step.kind === "tool" || step.kind === "hook" ? [step.kind, step.name, step.status] : [step.kind],
  );

describe("a conversation", () => {
  test("begins with what was said, and what became of each call", () => {
    const notes = [tool("succeeded", { finishedAtMs: 40 })];
    const outputs = [{ callId: "call_1", content: "ok", isError: false }];
    const messages = [...MESSAGES, { from: "operator", at: 50, outputs, text: "And now?" }];
    const conversation = withPast(NOTHING_SAID, past({ messages, messagesLen: 5, notes }));
    expect(told(conversation)).toEqual([["said"], ["answer"], ["tool", "bash", "succeeded"], ["said"]]);
    expect(conversation.steps[2]).toMatchObject({
      run: "run_1",
      startedAt: 30,
      endedAt: 40,
      output: "ok",
      isError: false,
    });
    expect(conversation.earlier).toBe(2);
  });

  test("says of a run while it is told that its result is an error", () => {
    const ended = tool("succeeded", { finishedAtMs: 40, isError: true });
    const known = withChange(withPast(NOTHING_SAID, past()), ended);
    expect(known.steps[2]).toMatchObject({ status: "succeeded", isError: true });
    // Another attempt has no result yet.
    const again = withChange(known, tool("running", { runId: "run_2", attempt: 2 }));
    expect(again.steps[2]).toMatchObject({ status: "running" });
    expect((again.steps[2] as { isError?: boolean }).isError).toBeUndefined();
  });

  test.each([
    ["rejected by the operator: no", "refused"],
    ["failed: no such program", "failed"],
    ["canceled", "canceled"],
    ["interrupted, outcome unknown", "lost"],
    ["exit code 1", "succeeded"],
  ])("knows by its output %j that a call was %s", (content, status) => {
    const outputs = [{ callId: "call_1", content, isError: true }];
    const messages = [...MESSAGES, { from: "operator", at: 50, outputs }];
    const { steps } = withPast(NOTHING_SAID, past({ messages, messagesLen: 3 }));
    expect(steps[2]).toMatchObject({ status, isError: true, output: content });
  });

  test("follows a run through its changes and never back", () => {
    const begun = withPast(NOTHING_SAID, past());
    expect(told(begun).at(-1)).toEqual(["tool", "bash", "pending"]);
    const ended = [
      tool("queued"),
      tool("running"),
      tool("failed", { error: "lost" }),
      tool("running"),
    ].reduce(withChange, begun);
    expect(told(ended).at(-1)).toEqual(["tool", "bash", "failed"]);
    // A look that was older than the stream.
    const looked = withPast(ended, past({ notes: [tool("running")] }));
    expect(looked.steps.at(-1)).toMatchObject({ status: "failed", error: "lost", input: call.arguments });
    const again = withChange(looked, tool("running", { attempt: 2, runId: "run_2" }));
    expect(again.steps.at(-1)).toMatchObject({ status: "running", run: "run_2", attempt: 2 });
    expect(again.steps.at(-1)).not.toHaveProperty("error");
  });

  test("shows a call of an agent's own with what the note says of it", () => {
    const own = tool("running", { callId: "own", arguments: { command: "ls" }, startedAtMs: 25 });
    const messages = [...MESSAGES, { from: "operator", at: 50, text: "Well" }];
    const { steps } = withPast(NOTHING_SAID, past({ messages, messagesLen: 3, notes: [own] }));
    expect(steps[3]).toMatchObject({ kind: "tool", id: "own", input: { command: "ls" } });
    expect(steps[4]).toMatchObject({ kind: "said", text: "Well" });
  });

  test("shows what came out of an agent's own call to who looks later", () => {
    const own = tool("succeeded", { callId: "own", output: "a b" });
    const { steps } = withPast(NOTHING_SAID, past({ notes: [own] }));
    expect(steps.at(-1)).toMatchObject({ id: "own", status: "succeeded", output: "a b" });
  });

  test("keeps the output that an agent's own tool told, over looks that do not know it", () => {
    const payload = { callId: "own", toolName: "Bash", arguments: { command: "ls" }, output: "a b" };
    const own = withChange(withPast(NOTHING_SAID, past()), tool("succeeded", { callId: "own" }));
    const told = withStreamed(own, piece(1, "tool_call_completed", payload, { streamId: "turn_9" }));
    const looked = withPast(told, past({ notes: [tool("succeeded", { callId: "own" })] }));
    expect(looked.steps.at(-1)).toMatchObject({ id: "own", output: "a b", input: { command: "ls" } });
  });

  test("takes outputs that the model was not given yet from the machine's state", () => {
    const run = { call, fate: { succeeded: { output: "so far", is_error: true } } };
    const conversation = withPast(
      NOTHING_SAID,
      past({ state: { kind: "Paused", then: { next: "llm", batch: [run] } } }),
    );
    expect(conversation.steps.at(-1)).toMatchObject({ status: "succeeded", output: "so far", isError: true });
  });

  test("says of a call that has not run whether a person is waited for", () => {
    const at = (kind: string, fate: unknown) =>
      withPast(NOTHING_SAID, past({ state: { kind, batch: [{ call, fate }] } })).steps.at(-1);
    expect(at("AwaitingApproval", "undecided")).toMatchObject({ status: "waiting" });
    expect(at("AwaitingApproval", "allowed")).toMatchObject({ status: "pending" });
    expect(at("AwaitingApproval", { rejected: "no" })).toMatchObject({ status: "refused", output: "no" });
  });

  test("puts the whole answer in the place of its pieces and keeps what was thought", () => {
    const thinking = piece(0, "thinking_delta", { text: "hm" });
    const coming = [thinking, word(1, "I w")].reduce(withStreamed, NOTHING_SAID);
    const whole = withPast(coming, past());
    expect(whole.live).toBeUndefined();
    expect(whole.thoughts.get("turn_1")).toBe("hm");
    expect(withStreamed(whole, word(2, "ill"))).toBe(whole);
    const next = withStreamed(whole, word(0, "x", { streamId: "turn_2" }));
    expect(withPast(next, past()).live?.text).toBe("x");
    expect(withoutLive(next)).not.toHaveProperty("live");
  });

  test("keeps a complete answer as it came until the past has it", () => {
    const call = { callId: "call_1", toolName: "bash", argumentsDelta: '{"command":"make"}' };
    const pieces = [
      piece(1, "thinking_delta", { text: "hm" }),
      word(2, "I will."),
      piece(3, "tool_call_delta", call),
      piece(4, "completed", { reason: "stop" }, { timestampMs: 20 }),
    ];
    const asked = withPast(NOTHING_SAID, past({ messages: MESSAGES.slice(0, 1), messagesLen: 1 }));
    const came = pieces.reduce(withStreamed, asked);
    const paused = { ...about, type: "state_changed", from: "A", to: "Paused", reason: "paused" } as Change;
    const ran = [tool("running"), paused].reduce(withChange, came);
    const shape = [["said"], ["answer"], ["tool", "bash", "running"], ["turn"]];
    expect(told(ran)).toEqual(shape);
    expect(ran.steps[2]).toMatchObject({ input: { command: "make" } });
    // A look from before, and one from after.
    expect(told(withPast(ran, past({ messages: MESSAGES.slice(0, 1), messagesLen: 1 })))).toEqual(shape);
    const whole = withPast(ran, past());
    expect(told(whole)).toEqual(shape);
    expect(whole.thoughts.get("turn_1")).toBe("hm");
    expect(whole.steps[1]).not.toHaveProperty("pieced");
  });

  test("tells what is no part of the usual round, once", () => {
    const state = (reason: string, eventId: string): Change =>
      ({ ...about, eventId, type: "state_changed", from: "Ready", to: "Paused", reason }) as Change;
    const error = {
      ...about,
      eventId: "x",
      type: "session_error",
      code: "streaming_failed",
      message: "502",
    } as Change;
    const all = [state("user_input", "a"), state("paused", "b"), state("paused", "b"), error, error];
    expect(told(all.reduce(withChange, NOTHING_SAID))).toEqual([["turn"], ["trouble"]]);
    const refusal = { ...error, eventId: "y", code: "state_transition_invalid" } as Change;
    expect(withChange(NOTHING_SAID, refusal)).toBe(NOTHING_SAID);
  });

  test("keeps what the stream told while an older look was on its way", () => {
    const hook = {
      ...tool("running"),
      type: "hook_lifecycle",
      runId: "h",
      hookName: "format",
      startedAtMs: 60,
    } as unknown as Change;
    const looked = withPast(withChange(withPast(NOTHING_SAID, past()), hook), past());
    expect(told(looked).at(-1)).toEqual(["hook", "format", "running"]);
  });

  test("is bounded", () => {
    const messages = Array.from({ length: STEPS_MAX + 50 }, (_, at) => ({ from: "operator", at, text: "x" }));
    expect(withPast(NOTHING_SAID, past({ messages, messagesLen: messages.length })).steps).toHaveLength(
      STEPS_MAX,
    );
  });

  test("reads what is strange as nothing", () => {
    const strange = [null, 7, { from: "nobody" }].filter((each) => each !== null);
    const odd = withPast(NOTHING_SAID, {
      state: 7,
      messages: strange,
      messagesLen: 2,
      notes: [{ type: "new" }],
    });
    expect(odd.steps).toEqual([]);
    expect(batchOf({ batch: [1, { call: {} }] })).toEqual([]);
    expect(
      retryAfterMs({ kind: "Error", wayOn: { retry: "llm", timer: { running: { after_ms: 250 } } } }),
    ).toBe(250);
    expect(retryAfterMs({ kind: "Error", wayOn: { timer: "none" } })).toBeUndefined();
  });
});
