import { readdirSync, readFileSync } from "node:fs";

import { expect, test } from "vitest";

import { shown } from "../../src/request";
import type { RequestKind, RequestView } from "../../src/wire";

function request(kind: RequestKind, input: unknown, text?: string): RequestView {
  return {
    requestId: "r",
    kind,
    since: 0,
    ...(input === undefined ? {} : { input }),
    ...(text === undefined ? {} : { text }),
  };
}

test("a command is shown as it runs, with the reason beside it", () => {
  const claude = request("permission", { command: "touch denied.txt", description: "t" });
  expect(shown(claude)).toEqual({ kind: "command", command: "touch denied.txt", reason: "t" });
  const codex = request("permission", {
    command: ["/bin/bash", "-lc", "touch /x"],
    cwd: "/home/coder/acme",
    reason: "outside",
  });
  expect(shown(codex)).toEqual({
    kind: "command",
    command: "touch /x",
    reason: "outside",
    folder: "/home/coder/acme",
  });
  const gemini = request("permission", { command: "ls", type: "exec" }, "ls");
  expect(shown(gemini)).toEqual({ kind: "command", command: "ls" });
});

test("a change is shown line by line, however it is spelled", () => {
  const lines = [
    { mark: "same", text: "a" },
    { mark: "removed", text: "b" },
    { mark: "added", text: "c" },
  ];
  const edit = { file_path: "/x.rs", old_string: "a\nb\n", new_string: "a\nc\n" };
  expect(shown(request("permission", edit))).toEqual({ kind: "change", file: "/x.rs", lines });
  const opencode = {
    filepath: "/x.rs",
    diff: "Index: /x.rs\n====================\n--- /x.rs\n+++ /x.rs\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n",
  };
  expect(shown(request("permission", opencode))).toEqual({
    kind: "change",
    file: "/x.rs",
    lines: [{ mark: "gap", text: "@@ -1,2 +1,2 @@" }, ...lines],
  });
  const write = shown(request("permission", { file_path: "/x", content: "hello\n" }));
  expect(write).toEqual({ kind: "change", file: "/x", lines: [{ mark: "added", text: "hello" }] });
});

test("a question is shown with its options", () => {
  const asked = {
    questions: [
      {
        question: "Which?",
        header: "H",
        options: [{ label: "A", description: "a" }, "B"],
        multiSelect: true,
      },
    ],
  };
  const question = {
    text: "Which?",
    header: "H",
    options: [{ label: "A", description: "a" }, { label: "B" }],
    several: true,
  };
  expect(shown(request("question", asked))).toEqual({ kind: "questions", questions: [question] });
  expect(shown(request("question", undefined, "Why?"))).toEqual({
    kind: "questions",
    questions: [{ text: "Why?", options: [], several: false }],
  });
});

test("what is not understood is shown whole", () => {
  expect(shown(request("permission", { odd: 1 }))).toEqual({ kind: "text", text: '{\n  "odd": 1\n}' });
  for (const input of [
    null,
    7,
    "text",
    [],
    { command: 3 },
    { questions: "x" },
    { edits: [null] },
    { options: [{}] },
  ]) {
    for (const kind of ["permission", "question", "plan"] as const) {
      expect(shown(request(kind, input)).kind).toBeTypeOf("string");
    }
  }
  expect(shown(request("permission", undefined))).toEqual({ kind: "nothing" });
});

/** Inputs that the real clients asked with, as they were recorded. */
function recorded(tool: string): unknown[] {
  const folder = new URL("../../../crates/harness/captured/claude-code/", import.meta.url);
  return readdirSync(folder).flatMap((capture) => {
    const lines = readFileSync(new URL(`${capture}/signals.jsonl`, folder), "utf8")
      .split("\n")
      .filter(Boolean);
    const payloads = lines.map((line) => (JSON.parse(line) as { payload: Record<string, unknown> }).payload);
    return payloads
      .filter(
        (payload) => payload["hook_event_name"] === "PermissionRequest" && payload["tool_name"] === tool,
      )
      .map((payload) => payload["tool_input"]);
  });
}

test("what real clients asked is understood", () => {
  const kinds = (tool: string, kind: RequestKind) =>
    new Set(recorded(tool).map((input) => shown(request(kind, input)).kind));
  expect(kinds("Bash", "permission")).toEqual(new Set(["command"]));
  expect(kinds("Write", "permission")).toEqual(new Set(["change"]));
  expect(kinds("AskUserQuestion", "question")).toEqual(new Set(["questions"]));
  expect(kinds("ExitPlanMode", "plan")).toEqual(new Set(["plan"]));
});
