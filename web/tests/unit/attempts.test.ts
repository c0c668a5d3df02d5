import { expect, test } from "vitest";

import { type Attempt, Attempts, isLocked, progressOf } from "../../src/attempts";
import { closed, DraftStore, goneOf, NO_DRAFT, withDraft, type Drafts } from "../../src/drafts";
import { ATTEMPTS_MAX, DRAFT_CHARS_MAX, DRAFTS_MAX } from "../../src/limits";
import type { AnswerView } from "../../src/wire";
import { card } from "../browser/sample";

const BY = { who: "ada", device: "phone" };
const answer = (state: AnswerView["state"], at = 1): AnswerView => ({
  decision: { type: "allow" },
  state,
  by: BY,
  at,
});
const numbered = () => {
  let count = 0;
  return new Attempts(() => `key ${(count += 1)}`);
};

test("an attempt goes out once, and again under the same key only if nobody heard it", () => {
  const attempts = numbered();
  const first = attempts.begin("r", { type: "allow" })!;
  expect(attempts.begin("r", { type: "allow" })).toBeUndefined();
  attempts.put("r", { ...first, state: "unheard", why: "away" });
  expect(attempts.begin("r", { type: "allow" })?.key).toBe("key 1");
  attempts.put("r", { ...first, state: "unheard", why: "away" });
  expect(attempts.begin("r", { type: "deny" })?.key).toBe("key 2");
  attempts.put("r", { ...first, state: "refused", why: "delivery failed" });
  expect(attempts.begin("r", { type: "allow" })?.key).toBe("key 3");
});

test("attempts are forgotten in the end, but not while they are on their way", () => {
  const attempts = numbered();
  attempts.begin("first", {});
  for (let index = 0; index < ATTEMPTS_MAX + 5; index += 1) {
    const each = attempts.begin(`r${index}`, {})!;
    attempts.put(`r${index}`, { ...each, state: "taken", said: "delivered" });
  }
  expect(attempts.of("first")?.state).toBe("sending");
  expect(attempts.of("r0")).toBeUndefined();
  expect(attempts.of(`r${ATTEMPTS_MAX + 4}`)?.state).toBe("taken");
});

test("what is shown is the newer of the attempt and the board's answer", () => {
  const sent = { key: "k", body: "{}" };
  const state = (given: AnswerView | undefined, attempt?: Attempt) => progressOf(given, attempt).state;
  expect(state(undefined)).toBe("open");
  expect(state(answer("sending"))).toBe("sending");
  expect(state(answer("delivered"))).toBe("delivered");
  expect(state(answer("failed"))).toBe("failed");
  expect(state(answer("unclear"))).toBe("unclear");
  expect(state(undefined, { ...sent, state: "sending" })).toBe("sending");
  expect(state(undefined, { ...sent, state: "taken", said: "sending" })).toBe("sending");
  expect(state(undefined, { ...sent, state: "taken", said: "delivered" })).toBe("delivered");
  // The board says that what was taken did not arrive.
  expect(state(answer("failed"), { ...sent, state: "taken", said: "sending" })).toBe("failed");
  // It still shows the failure that this attempt is to mend.
  expect(state(answer("failed", 7), { ...sent, over: 7, state: "taken", said: "delivered" })).toBe(
    "delivered",
  );
  expect(state(answer("failed", 7), { ...sent, over: 7, state: "refused", why: "again" })).toBe("failed");
  expect(state(undefined, { ...sent, state: "unheard", why: "away" })).toBe("unclear");
  const first = { decision: { type: "deny" }, by: BY, at: 1, state: "delivered" } as const;
  expect(state(undefined, { ...sent, state: "refused", why: "late", first })).toBe("answered");
  const locked = (["sending", "delivered"] as const).map((each) =>
    isLocked(progressOf(answer(each), undefined)),
  );
  expect(locked).toEqual([true, true]);
  expect(isLocked(progressOf(answer("failed"), undefined))).toBe(false);
});

test("text that was not sent outlives its request", () => {
  const open = card("s", "needs_you", "idle", {
    requests: [
      { requestId: "r", key: "req_1", kind: "permission", since: 0, takesWords: true, takesChanges: false },
    ],
  });
  const draft = { ...NO_DRAFT, prompt: "next", requests: { req_1: { message: "use pnpm" } } };
  expect(goneOf(draft, open)).toEqual([]);
  const [gone] = goneOf(draft, { ...open, requests: [] });
  expect(closed(draft, gone!, true)).toEqual({ prompt: "next", requests: {}, left: [] });
  expect(closed(draft, gone!, false, BY)).toEqual({
    prompt: "next",
    requests: {},
    left: [{ text: "use pnpm", by: BY }],
  });
});

test("drafts have an end, are kept in the tab, and hold no secret there", () => {
  let all: Drafts = new Map();
  for (let index = 0; index < DRAFTS_MAX + 3; index += 1) {
    all = withDraft(all, `s${index}`, { ...NO_DRAFT, prompt: "x" });
  }
  expect([all.size, all.has("s2"), all.has("s3")]).toEqual([DRAFTS_MAX, false, true]);

  const kept = new Map<string, string>();
  const storage = {
    getItem: (name: string) => kept.get(name) ?? null,
    setItem: (name: string, value: string) => void kept.set(name, value),
  };
  const store = new DraftStore(storage);
  store.prompt("s", "x".repeat(DRAFT_CHARS_MAX + 1));
  store.change("s", "req_1", { open: "always" });
  store.change("s", "req_1", { open: undefined });
  expect(store.of("s").requests).toEqual({});
  store.change("s", "req_2", { filled: [{ chosen: [], text: "hunter2", secret: true }] });
  expect(store.of("s").requests["req_2"]?.filled?.[0]?.text).toBe("hunter2");
  const again = new DraftStore(storage);
  expect(again.of("s").prompt).toHaveLength(DRAFT_CHARS_MAX);
  expect([...kept.values()].join()).not.toContain("hunter2");
  for (const broken of ["{", "7", '[["s"]]', '[["s",{"left":1}]]']) {
    kept.set("drafts", broken);
    expect(new DraftStore(storage).all().size).toBe(0);
  }
  store.prompt("s", "");
  store.change("s", "req_2", { filled: [] });
  expect(store.all().size).toBe(0);
});
