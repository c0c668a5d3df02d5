import { readFileSync } from "node:fs";

import { expect, test } from "vitest";

import { diff } from "../../src/diff";
import { DIFF_LINES_MAX } from "../../src/limits";
import { readDiff } from "../../src/patch";
import { shown } from "../../src/request";
import type { RequestKind, RequestView } from "../../src/wire";

function request(kind: RequestKind, input: unknown, text?: string, tool?: string): RequestView {
  return {
    requestId: "r",
    kind,
    since: 0,
    takesWords: true,
    takesChanges: false,
    ...(input === undefined ? {} : { input }),
    ...(text === undefined ? {} : { text }),
    ...(tool === undefined ? {} : { tool }),
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
  expect(shown(request("permission", edit))).toEqual({
    kind: "change",
    files: [{ file: "/x.rs", lines }],
  });
  const opencode = {
    filepath: "/x.rs",
    diff: "Index: /x.rs\n====================\n--- /x.rs\n+++ /x.rs\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n",
  };
  expect(shown(request("permission", opencode))).toEqual({
    kind: "change",
    files: [{ file: "/x.rs", lines: [{ mark: "gap", text: "@@ -1,2 +1,2 @@" }, ...lines] }],
  });
  const write = shown(request("permission", { file_path: "/x", content: "hello\n" }));
  expect(write).toEqual({
    kind: "change",
    files: [{ file: "/x", lines: [{ mark: "added", text: "hello" }] }],
  });
});

test("a patch of Codex is a change of its files, and a command that looks like one is a command", () => {
  const command =
    "*** Begin Patch\n*** Add File: a.txt\n+hello\n*** Update File: b.rs\n*** Move to: c.rs\n@@ fn one\n kept\n" +
    "--- old\n+++ new\n*** Delete File: d.md\n*** End Patch\n";
  expect(shown(request("permission", { command }, undefined, "apply_patch"))).toEqual({
    kind: "change",
    files: [
      { file: "a.txt", note: "new file", lines: [{ mark: "added", text: "hello" }] },
      {
        file: "b.rs",
        note: "moves to c.rs",
        lines: [
          { mark: "gap", text: "@@ fn one" },
          { mark: "same", text: "kept" },
          { mark: "removed", text: "-- old" },
          { mark: "added", text: "++ new" },
        ],
      },
      { file: "d.md", note: "deleted", lines: [] },
    ],
  });
  expect(shown(request("permission", { command }, undefined, "Bash"))).toMatchObject({ kind: "command" });
  // What else an input has does not hide the command that is run.
  const both = { command: "rm -rf x", file_path: "/x", content: "harmless" };
  expect(shown(request("permission", both))).toMatchObject({ kind: "command", command: "rm -rf x" });
});

test("a list of changes is understood whole or not at all", () => {
  const kind = { type: "update", move_path: null };
  const update = { path: "/a.md", kind, diff: "@@ -1,1 +1,1 @@\n-old\n+new\n" };
  const gone = { path: "/b.md", kind: { type: "delete" }, diff: "bye\n" };
  expect(shown(request("permission", { changes: [update, gone], reason: null }))).toEqual({
    kind: "change",
    files: [
      {
        file: "/a.md",
        lines: [
          { mark: "gap", text: "@@ -1,1 +1,1 @@" },
          { mark: "removed", text: "old" },
          { mark: "added", text: "new" },
        ],
      },
      { file: "/b.md", note: "deleted", lines: [{ mark: "removed", text: "bye" }] },
    ],
  });
  const odd = { changes: [update, { path: "/c", kind: { type: "chmod" }, diff: "" }] };
  expect(shown(request("permission", odd)).kind).toBe("text");
});

test("a diff hides no line of a file, however it looks", () => {
  const twice =
    "diff --git a/x.sql b/x.sql\nindex 1..2 100644\n--- a/x.sql\n+++ b/x.sql\n@@ -1,2 +1,2 @@\n-\n--- drop\n+\n+++ add\n" +
    "--- /dev/null\n+++ b/y\n@@ -0,0 +1 @@\n+y\n\\ No newline at end of file\n";
  expect(readDiff(twice)).toEqual([
    {
      file: "x.sql",
      lines: [
        { mark: "gap", text: "@@ -1,2 +1,2 @@" },
        { mark: "removed", text: "" },
        { mark: "removed", text: "-- drop" },
        { mark: "added", text: "" },
        { mark: "added", text: "++ add" },
      ],
    },
    {
      file: "y",
      note: "new file",
      lines: [
        { mark: "gap", text: "@@ -0,0 +1 @@" },
        { mark: "added", text: "y" },
      ],
    },
  ]);
});

test("of a whole file only the lines around its change are shown", () => {
  const file = Array.from({ length: 3 * DIFF_LINES_MAX }, (_, nth) => `line ${nth}`);
  const changed = file.with(600, "new");
  expect(diff(file.join("\n"), changed.join("\n"))).toEqual([
    { mark: "gap", text: "597 lines as they are" },
    ...[597, 598, 599].map((nth) => ({ mark: "same", text: `line ${nth}` })),
    { mark: "removed", text: "line 600" },
    { mark: "added", text: "new" },
    ...[601, 602, 603].map((nth) => ({ mark: "same", text: `line ${nth}` })),
    { mark: "gap", text: "596 lines as they are" },
  ]);
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

type Ask = Pick<RequestView, "kind"> & { tool: string | null; text: string | null; input: unknown };

const written = (path: string) => readFileSync(new URL(path, import.meta.url), "utf8");

/** What the real clients asked, as their handlers hand it on. */
const recorded = Object.entries(JSON.parse(written("recorded_asks.json")) as Record<string, Ask[]>).flatMap(
  ([client, all]) =>
    all.map(({ kind, tool, text, input }) => ({
      name: `${client} ${kind} ${tool}`,
      what: shown(request(kind, input ?? undefined, text ?? undefined, tool ?? undefined)),
    })),
);

test("what real clients asked is understood", () => {
  const kinds: Record<string, string[]> = {};
  for (const { name, what } of recorded) (kinds[name] ??= []).push(what.kind);
  const seen = Object.entries(kinds).map(([name, all]) => [name, [...new Set(all)].join(" or ")]);
  expect(Object.fromEntries(seen)).toEqual({
    "claude-acp plan ExitPlanMode": "plan",
    "claude-code permission Bash": "command",
    "claude-code permission Write": "change",
    "claude-code plan ExitPlanMode": "plan",
    "claude-code question AskUserQuestion": "questions",
    "cline2 permission editedExistingFile": "change",
    "codex permission Bash": "command",
    // Its server asks without saying what: the item that it asks about was told before.
    "codex permission apply_patch": "change or text",
    "codex permission exec_command": "command",
    "codex plan null": "plan",
    // Its telemetry cuts what is long.
    "codex question request_user_input": "text or questions",
    "codex question request_user_input_async": "questions",
    "codex-acp permission execute": "command",
    "gemini permission run_shell_command": "command",
    "gemini-acp permission edit": "change",
    "gemini-acp permission execute": "command",
    "kilo-legacy question null": "questions",
    "kilo7 permission bash": "command",
    "kilo7 permission edit": "change",
    "opencode permission bash": "command",
    "opencode permission edit": "change",
    "opencode question question": "questions",
  });
  // What is shown is not said a second time.
  const changes = recorded.flatMap(({ what }) => (what.kind === "change" ? [what] : []));
  expect(new Set(changes.map(({ reason }) => reason))).toEqual(
    new Set([undefined, "Writing to src/greet.js"]),
  );
});

/** The messages of a recording. */
const messages = (capture: string) =>
  written(`../../../crates/harness/captured/${capture}/signals.jsonl`)
    .split("\n")
    .filter(Boolean)
    .map((line) => (JSON.parse(line) as { payload: { method?: string; params?: any } }).payload);

test("what agents ask that we drive is understood, too", () => {
  // The call that Codex asks about is the item that began before.
  const items = messages("codex/app-patch").filter(({ method }) => method === "item/started");
  const { changes } = items.map(({ params }) => params.item).find(({ type }) => type === "fileChange");
  expect(shown(request("permission", { changes, reason: null }, undefined, "apply_patch"))).toMatchObject({
    kind: "change",
    files: [{ file: "/home/coder/acme/README.md" }, { file: "/home/coder/acme/notes.txt", note: "new file" }],
  });
  const asked = messages("gemini-acp/allow-deny-yolo").filter(
    ({ method }) => method === "session/request_permission",
  );
  const [edit, command] = asked.map(({ params }) => {
    const { title, content, kind } = params.toolCall;
    return shown(request("permission", { title, content }, undefined, kind));
  });
  expect(edit).toMatchObject({
    kind: "change",
    files: [{ file: "/home/dev/webapp/src/greet.js", lines: [{ mark: "removed" }, {}, {}, {}, {}] }],
  });
  expect(command).toMatchObject({ kind: "command", command: 'node -e "console.log(1+1)"' });
});

test("a field beside the command is shown: a tool may run by any of them", () => {
  const sly = { command: "ls", script: "rm -rf ~", args: ["-rf"], sandbox: false, reason: "r", note: null };
  expect(shown(request("permission", sly, undefined, "mcp__run__it"))).toEqual({
    kind: "command",
    command: "ls",
    reason: "r",
    beside: 'script: rm -rf ~\nargs: ["-rf"]\nsandbox: false',
  });
  // The names of an agent's own book-keeping mean something else to a tool of somebody else's.
  const named = { command: "ls", title: "rm -rf ~", parsed_cmd: "x" };
  expect(shown(request("permission", named, undefined, "mcp__x"))).toMatchObject({
    beside: "title: rm -rf ~\nparsed_cmd: x",
  });
  expect(shown(request("permission", { command: "ls", turn_id: "t" }, undefined, "Bash"))).toEqual({
    kind: "command",
    command: "ls",
  });
  const edit = { file_path: "/x", old_string: "a", new_string: "b", replace_all: true };
  expect(shown(request("permission", edit, undefined, "Edit"))).toMatchObject({
    beside: "replace_all: true",
  });
  const fetched = { url: "https://example.org", method: "POST", body: "secret" };
  expect(shown(request("permission", fetched))).toMatchObject({ beside: "method: POST\nbody: secret" });
  const plan = { plan: "# Plan", allowedPrompts: [{ tool: "Bash", prompt: "push" }] };
  expect(shown(request("plan", plan))).toMatchObject({ beside: expect.stringContaining("push") as string });
});

test("the words of a command are told apart, and only a shell's script stands for the whole", () => {
  const command = (words: unknown) => shown(request("permission", { command: words }));
  expect(command(["rm", "a b", "it's"])).toMatchObject({ command: `rm 'a b' 'it'\\''s'` });
  expect(command(["/tmp/evil", "-c", "ls"])).toMatchObject({ command: "/tmp/evil -c ls" });
  expect(command(["/tmp/bash", "-lc", "ls"])).toMatchObject({ command: "/tmp/bash -lc ls" });
  expect(command(["/usr/bin/zsh", "-c", "ls"])).toMatchObject({ command: "ls" });
  expect(command(["ls", { x: 1 }])).toMatchObject({ command: '["ls",{"x":1}]' });
});
