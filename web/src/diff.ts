/** What changes between two texts, line by line. Pure. */

import { DIFF_LINES_MAX } from "./limits";

export interface DiffLine {
  mark: "same" | "added" | "removed" | "gap";
  text: string;
}

/** The lines of a change. Texts too long to compare are shown as all removed and all added. */
export function diff(before: string, after: string): DiffLine[] {
  const [old, fresh] = [linesOf(before), linesOf(after)];
  const removed = (text: string): DiffLine => ({ mark: "removed", text });
  const added = (text: string): DiffLine => ({ mark: "added", text });
  if (old.length > DIFF_LINES_MAX || fresh.length > DIFF_LINES_MAX) {
    return [...old.map(removed), ...fresh.map(added)];
  }
  const common = commonLengths(old, fresh);
  const lines: DiffLine[] = [];
  let [i, j] = [0, 0];
  while (i < old.length && j < fresh.length) {
    if (old[i] === fresh[j]) {
      lines.push({ mark: "same", text: old[i]! });
      i += 1;
      j += 1;
    } else if (common[i + 1]![j]! >= common[i]![j + 1]!) {
      lines.push(removed(old[i]!));
      i += 1;
    } else {
      lines.push(added(fresh[j]!));
      j += 1;
    }
  }
  return [...lines, ...old.slice(i).map(removed), ...fresh.slice(j).map(added)];
}

/** A change that somebody else worked out: a unified diff, or a patch in Codex's own form. */
export function readDiff(text: string): DiffLine[] {
  return linesOf(text)
    .filter((line) => !/^(Index: |={10,}|--- |\+\+\+ |diff --git |index |\\ No newline)/.test(line))
    .map((line) => {
      if (line.startsWith("@@") || line.startsWith("***")) return { mark: "gap", text: line };
      if (line.startsWith("+")) return { mark: "added", text: line.slice(1) };
      if (line.startsWith("-")) return { mark: "removed", text: line.slice(1) };
      return { mark: "same", text: line.startsWith(" ") ? line.slice(1) : line };
    });
}

export function linesOf(text: string): string[] {
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

/** How many lines are common to what is left of both, from each place on. */
function commonLengths(old: readonly string[], fresh: readonly string[]): number[][] {
  const table = Array.from({ length: old.length + 1 }, () => Array<number>(fresh.length + 1).fill(0));
  for (let i = old.length - 1; i >= 0; i -= 1) {
    for (let j = fresh.length - 1; j >= 0; j -= 1) {
      const same = old[i] === fresh[j];
      table[i]![j] = same ? table[i + 1]![j + 1]! + 1 : Math.max(table[i + 1]![j]!, table[i]![j + 1]!);
    }
  }
  return table;
}
