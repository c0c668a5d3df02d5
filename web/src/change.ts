/**
 * Which files a tool's input changes, and how. Pure.
 *
 * Each product spells it differently; a list of which one entry is not understood is not
 * understood at all, so that nobody decides on a part.
 */

import { diff, type DiffLine, linesOf } from "./diff";
import { type Fields, fields, text } from "./fields";
import { DELETED, type FileChange, isPatch, NEW_FILE, readDiff } from "./patch";

/** None where it is no change of files. */
export function changesOf(input: Fields): FileChange[] | undefined {
  const listed = listedChanges(input["changes"]) ?? diffBlocks(input["content"]);
  if (listed !== undefined) return listed;
  const file = text(input, "file_path", "filePath", "filepath", "path", "notebook_path");
  const ready = readyDiff(input);
  if (ready !== undefined) return ofFile(file, ready);
  const lines = edited(input);
  return lines && ofFile(file, [{ lines }]);
}

/** Codex gives a patch as its tool's command. A shell's command is one, whatever it looks like. */
export function patchOf(tool: string | undefined, { command }: Fields): FileChange[] | undefined {
  const isIt = tool === "apply_patch" && typeof command === "string" && isPatch(command);
  return isIt ? readDiff(command) : undefined;
}

/** A diff of one file is of the one that the input names. */
function ofFile(file: string | undefined, changes: FileChange[]): FileChange[] {
  const [only] = changes;
  return file === undefined || changes.length !== 1 ? changes : [{ ...only!, file }];
}

function readyDiff(input: Fields): FileChange[] | undefined {
  const ready = text(input, "diff", "patch", "unified_diff", "unifiedDiff");
  if (ready !== undefined) return readDiff(ready);
  // Kilo puts it where others have the whole file.
  const content = input["content"];
  return typeof content === "string" && /^@@ -\d+(,\d+)? \+\d+(,\d+)? @@/.test(content)
    ? readDiff(content)
    : undefined;
}

function edited(input: Fields): DiffLine[] | undefined {
  const edits = input["edits"];
  if (Array.isArray(edits)) {
    const all = edits.map((edit) => replaced(fields(edit)));
    if (all.includes(undefined)) return undefined;
    return all.flatMap((lines, index) => (index === 0 ? lines! : [{ mark: "gap", text: "" }, ...lines!]));
  }
  const lines = replaced(input);
  if (lines !== undefined) return lines;
  const content = input["content"] ?? input["new_source"];
  // Kilo and Cline name the file that is read a second time there.
  const isRead = /^(read|list|search)/.test(text(input, "tool") ?? "");
  return typeof content === "string" && !isRead ? all("added", content) : undefined;
}

function replaced(input: Fields): DiffLine[] | undefined {
  const before = input["old_string"] ?? input["oldString"] ?? input["oldText"] ?? input["old_text"];
  const after = input["new_string"] ?? input["newString"] ?? input["newText"] ?? input["new_text"];
  if (typeof after !== "string") return undefined;
  return diff(typeof before === "string" ? before : "", after);
}

const all = (mark: DiffLine["mark"], content: string): DiffLine[] =>
  linesOf(content).map((line) => ({ mark, text: line }));

/** Codex's list of changes: a new file and one that goes are given whole, the others as a diff. */
function listedChanges(value: unknown): FileChange[] | undefined {
  if (!Array.isArray(value) || value.length === 0) return undefined;
  const changes = value.map((each) => listedChange(fields(each)));
  return changes.includes(undefined) ? undefined : (changes as FileChange[]);
}

function listedChange(change: Fields): FileChange | undefined {
  const [file, body] = [text(change, "path"), change["diff"]];
  if (file === undefined || typeof body !== "string") return undefined;
  const kind = fields(change["kind"]);
  switch (kind["type"]) {
    case "add":
      return { file, note: NEW_FILE, lines: all("added", body) };
    case "delete":
      return { file, note: DELETED, lines: all("removed", body) };
    case "update": {
      const moved = text(kind, "move_path", "movePath");
      const lines = readDiff(body).flatMap((part) => part.lines);
      return { file, ...(moved === undefined ? {} : { note: `moves to ${moved}` }), lines };
    }
    default:
      return undefined;
  }
}

/** The diffs among the blocks by which an ACP agent tells what a call does. */
function diffBlocks(value: unknown): FileChange[] | undefined {
  if (!Array.isArray(value)) return undefined;
  const blocks = value.map(fields).filter((block) => block["type"] === "diff");
  const changes = blocks.map((block): FileChange | undefined => {
    const [file, lines] = [text(block, "path"), replaced(block)];
    if (file === undefined || lines === undefined) return undefined;
    const isNew = typeof block["oldText"] !== "string";
    return { file, ...(isNew ? { note: NEW_FILE } : {}), lines };
  });
  return changes.length === 0 || changes.includes(undefined) ? undefined : (changes as FileChange[]);
}

/** What an ACP agent says about a call in words. */
export function wordsOf(content: unknown): string | undefined {
  if (!Array.isArray(content)) return undefined;
  const words = content.flatMap((block) => text(fields(fields(block)["content"]), "text") ?? []);
  return words.length === 0 ? undefined : words.join("\n");
}
