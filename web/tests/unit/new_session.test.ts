import { expect, test } from "vitest";

import { Refused } from "../../src/api";
import {
  chosenOf,
  harnessOffers,
  keptChoice,
  knownFolders,
  knownModels,
  readChoice,
  refusedAt,
  troubleOf,
  wantedOf,
} from "../../src/new_session";
import type { HarnessList } from "../../src/wire";
import { card } from "../browser/sample";

const choice = readChoice(null);

test("all agents are offered where the server does not say which", () => {
  const offers = harnessOffers(undefined);
  expect(offers.map(({ label }) => label)).toContain("Claude Code");
  expect(offers).toHaveLength(8);
  expect(offers.every(({ possible }) => possible)).toBe(true);
});

test("one that is not possible says why, under the name that the server takes", () => {
  const harnesses = [
    { harness: "gemini_cli", possible: false, why: "not installed" },
    { harness: "native", possible: true, providers: ["main"] },
  ] as HarnessList["harnesses"];
  const offers = harnessOffers({ harnesses });
  const [gemini, native] = [
    { name: "gemini-cli", label: "Gemini CLI", possible: false, why: "not installed", providers: [] },
    { name: "native", label: "Native", possible: true, providers: ["main"] },
  ];
  expect(offers).toEqual([gemini, native]);
  expect(chosenOf(offers, "gemini-cli")).toEqual(native);
  expect(chosenOf(offers.slice(0, 1), "gemini-cli")).toEqual(gemini);
});

test("folders are those of sessions, the newest first and each once", () => {
  const at = (id: string, cwd: string, lastSignal: number) =>
    card(id, "needs_you", "idle", { cwd, lastSignal });
  const cards = [at("a", "/a", 1), at("b", "/b", 3), at("c", "/a", 2)];
  expect(knownFolders(cards, "/last")).toEqual(["/last", "/b", "/a"]);
  expect(knownFolders(cards, "")).toEqual(["/b", "/a"]);
});

test("the last choice is there again, but YOLO is not", () => {
  const last = { ...choice, harness: "codex", folder: "/w", preset: "auto-edit" as const };
  expect(readChoice(keptChoice(last))).toEqual(last);
  expect(readChoice(keptChoice({ ...last, preset: "yolo" })).preset).toBe("careful");
});

test.each([["{"], ["null"], ["[]"], ['{"harness":7,"preset":"all"}']])(
  "what reads like no choice (%s) is none",
  (kept) => {
    expect(readChoice(kept)).toEqual(choice);
  },
);

test("nothing is sent without a folder from the root", () => {
  expect(troubleOf(choice)).toMatchObject({ place: "folder" });
  expect(troubleOf({ ...choice, folder: "work" })).toMatchObject({ place: "folder" });
  expect(troubleOf({ ...choice, folder: " /work " })).toBeUndefined();
});

test("only what was said is sent, and a provider to none but our own agent", () => {
  const full = { ...choice, folder: " /w ", provider: " main ", model: "m" };
  const wanted = { harness: "native", workspace: "/w", preset: "careful", provider: "main", model: "m" };
  expect(wantedOf(full, "  ")).toEqual(wanted);
  const { provider: _, ...others } = wanted;
  expect(wantedOf({ ...full, harness: "codex" }, "Go ")).toEqual({
    ...others,
    harness: "codex",
    prompt: "Go",
  });
});

test("of several ACP agents one is chosen, and the only one is meant", () => {
  const offers = (providers: string[]) =>
    harnessOffers({ harnesses: [{ harness: "acp", possible: true, providers }] });
  const wants = (provider: string, ...known: string[]) => {
    const [offer] = offers(known);
    const acp = { ...choice, harness: "acp", folder: "/w", provider };
    return [troubleOf(acp, offer)?.place, wantedOf(acp, "", offer).provider];
  };
  expect(wants("", "duck", "goose")).toEqual(["provider", undefined]);
  expect(wants("goose", "duck", "goose")).toEqual([undefined, "goose"]);
  expect(wants("", "goose")).toEqual([undefined, "goose"]);
  // It was chosen last, and is not set up any more.
  expect(wants("swan", "duck", "goose")).toEqual(["provider", undefined]);
});

test.each([
  [400, "no_workspace", "folder"],
  [409, "not_possible", "harness"],
  [503, "too_many_sessions", "foot"],
])("a refusal (%i %s) is shown at the %s", (status, code, place) => {
  const refused = new Refused(status, { code, message: "no", retryable: false });
  expect(refusedAt(refused)).toEqual({ place, why: "no" });
});

test("who was not heard may have been heard all the same", () => {
  const refused = new Refused(0, {
    code: "unreachable",
    message: "the daemon does not answer",
    retryable: true,
  });
  expect(refusedAt(refused).why).toContain("look at the board");
});

test("models are those that its sessions used", () => {
  expect(
    knownModels([card("a", "needs_you", "idle"), card("b", "needs_you", "idle")], "claude-code"),
  ).toEqual(["claude-opus-5-5"]);
  expect(knownModels([card("a", "needs_you", "idle")], "codex")).toEqual([]);
});
