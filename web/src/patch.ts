/** Changes that somebody else worked out: a unified diff, or a patch in Codex's own form. Pure. */

import { type DiffLine, linesOf } from "./diff";

/** What is done to one file. */
export interface FileChange {
  file?: string;
  /** What else happens to it: it is new, it goes, it moves. */
  note?: string;
  lines: DiffLine[];
}

export const NEW_FILE = "new file";
export const DELETED = "deleted";

/** File by file. What is no part of a diff is a line all the same: nothing is left out. */
export function readDiff(text: string): FileChange[] {
  return isPatch(text) ? readPatch(text) : readUnified(text);
}

/** Codex's own form, from its first line on. */
export const isPatch = (text: string) => /^\s*\*\*\* Begin Patch[ \t]*(\n|$)/.test(text);

const FILE = /^\*\*\* (Add|Update|Delete) File: (.+)$/;

function readPatch(text: string): FileChange[] {
  const found = new Found();
  for (const line of linesOf(text)) {
    const [, verb, file] = FILE.exec(line) ?? [];
    if (file !== undefined) {
      const note = verb === "Add" ? NEW_FILE : verb === "Delete" ? DELETED : undefined;
      found.open(file, note);
    } else if (line.startsWith("*** Move to: ")) {
      found.note(`moves to ${line.slice("*** Move to: ".length)}`);
    } else if (!/^\*\*\* (Begin|End) Patch\s*$/.test(line)) {
      found.push(/^(@@|\*\*\*)/.test(line) ? { mark: "gap", text: line } : marked(line));
    }
  }
  return found.files();
}

/** Lines of a unified diff that only name what is named above the lines of the file. */
const HEAD = /^(Index: |={10,}$|diff --git |index [0-9a-f]+\.\.)/;
const HUNK = /^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@/;

function readUnified(text: string): FileChange[] {
  const found = new Found();
  const lines = linesOf(text);
  // Within a hunk a line that looks like a head is a line of the file.
  let [old, fresh] = [0, 0];
  for (let at = 0; at < lines.length; at += 1) {
    const line = lines[at]!;
    const next = lines[at + 1];
    if (line.startsWith("\\ No newline")) continue;
    if ((old > 0 || fresh > 0) && /^([-+ ]|$)/.test(line)) {
      if (!line.startsWith("+")) old -= 1;
      if (!line.startsWith("-")) fresh -= 1;
      found.push(marked(line));
    } else if (line.startsWith("--- ") && next?.startsWith("+++ ")) {
      found.open(...named(line.slice(4), next.slice(4)));
      at += 1;
    } else if (line.startsWith("@@")) {
      const hunk = HUNK.exec(line);
      [old, fresh] = hunk ? [Number(hunk[1] ?? 1), Number(hunk[2] ?? 1)] : [Infinity, Infinity];
      found.push({ mark: "gap", text: line });
    } else {
      [old, fresh] = [0, 0];
      if (!HEAD.test(line)) found.push(marked(line));
    }
  }
  return found.files();
}

/** The file of a diff's head; Git writes `a/` and `b/` before it, others a time behind it. */
function named(before: string, after: string): [file: string, note?: string] {
  const [was, is] = [before, after].map((name) => name.replace(/\t.*$/, ""));
  const plain = (name: string) => name.replace(/^[ab]\//, "");
  if (was === "/dev/null") return [plain(is!), NEW_FILE];
  if (is === "/dev/null") return [plain(was!), DELETED];
  const isGit = was!.startsWith("a/") && is!.startsWith("b/");
  const [from, to] = isGit ? [was!.slice(2), is!.slice(2)] : [was!, is!];
  return from === to ? [to] : [from, `moves to ${to}`];
}

function marked(line: string): DiffLine {
  if (line.startsWith("+")) return { mark: "added", text: line.slice(1) };
  if (line.startsWith("-")) return { mark: "removed", text: line.slice(1) };
  return { mark: "same", text: line.startsWith(" ") ? line.slice(1) : line };
}

/** Files as they are come upon. */
class Found {
  private readonly all: FileChange[] = [];

  open(file: string, note?: string): void {
    this.all.push({ file, ...(note === undefined ? {} : { note }), lines: [] });
  }

  note(note: string): void {
    const last = this.last();
    last.note = last.note === undefined ? note : `${last.note}, ${note}`;
  }

  push(line: DiffLine): void {
    this.last().lines.push(line);
  }

  files(): FileChange[] {
    return this.all;
  }

  /** Before the first file's name there may be lines, too. */
  private last(): FileChange {
    const last = this.all.at(-1) ?? { lines: [] };
    if (this.all.length === 0) this.all.push(last);
    return last;
  }
}
