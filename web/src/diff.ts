/** What changes between two texts, line by line. Pure. */

import { DIFF_CONTEXT_LINES, DIFF_LINES_MAX } from "./limits";
import { BLANK_LINES_MAX } from "./visible";

export interface DiffLine {
  mark: "same" | "added" | "removed" | "gap";
  text: string;
  /** So many blank lines that one stands for all. */
  blanks?: number;
}

/** One line in the place of many blank ones, which would push what follows out of sight. */
export function withoutBlankRuns(lines: readonly DiffLine[]): DiffLine[] {
  const kept: DiffLine[] = [];
  for (let at = 0; at < lines.length;) {
    const { mark } = lines[at]!;
    let end = at;
    while (lines[end]?.mark === mark && mark !== "gap" && lines[end]!.text.trim() === "") end += 1;
    if (end - at > BLANK_LINES_MAX) kept.push({ mark, text: "", blanks: end - at });
    else kept.push(...lines.slice(at, Math.max(end, at + 1)));
    at = Math.max(end, at + 1);
  }
  return kept;
}

/** The lines of a change, with a few around it. What is too long to compare is all removed and all added. */
export function diff(before: string, after: string): DiffLine[] {
  const [old, fresh] = [linesOf(before), linesOf(after)];
  let head = 0;
  while (head < old.length && head < fresh.length && old[head] === fresh[head]) head += 1;
  let tail = 0;
  const rest = Math.min(old.length, fresh.length) - head;
  while (tail < rest && old.at(-1 - tail) === fresh.at(-1 - tail)) tail += 1;
  const same = (text: string): DiffLine => ({ mark: "same", text });
  return excerpted([
    ...old.slice(0, head).map(same),
    ...compared(old.slice(head, old.length - tail), fresh.slice(head, fresh.length - tail)),
    ...old.slice(old.length - tail).map(same),
  ]);
}

function compared(old: readonly string[], fresh: readonly string[]): DiffLine[] {
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

/** Without the lines that stay as they are and are far from any change: some agents give whole files. */
function excerpted(lines: readonly DiffLine[]): DiffLine[] {
  const isNear = lines.map(() => false);
  for (const [at, { mark }] of lines.entries()) {
    if (mark !== "same") isNear.fill(true, Math.max(0, at - DIFF_CONTEXT_LINES), at + DIFF_CONTEXT_LINES + 1);
  }
  const shown: DiffLine[] = [];
  for (let at = 0; at < lines.length;) {
    let end = at;
    while (end < lines.length && !isNear[end]) end += 1;
    // A mark for one line would take the line's place.
    if (end - at > 1) shown.push({ mark: "gap", text: `${end - at} lines as they are` });
    else if (end > at) shown.push(lines[at]!);
    at = end;
    while (at < lines.length && isNear[at]) shown.push(lines[at++]!);
  }
  return shown;
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
