/** How long sessions were in each group. Pure. */

import { GROUPS } from "./board";
import type { Group, GroupSpan } from "./wire";

export type TimeIn = Readonly<Record<Group, number>>;

/** Milliseconds in each group; what lasts is counted until `now`. */
export function timeIn(spans: readonly GroupSpan[], now: number): TimeIn {
  const time: Record<Group, number> = { needs_you: 0, autonomous: 0, delivered: 0 };
  for (const { group, from, to } of spans) time[group] += Math.max(0, (to ?? now) - from);
  return time;
}

export interface Segment {
  group: Group;
  /** 0 to 100. */
  start: number;
  width: number;
}

/** The spans as they lie on a line from the first to the end of the last. */
export function segments(spans: readonly GroupSpan[], now: number): Segment[] {
  const from = Math.min(...spans.map((span) => span.from));
  const to = Math.max(from + 1, ...spans.map((span) => span.to ?? now));
  const share = (at: number) => ((at - from) / (to - from)) * 100;
  return spans.map((span) => ({
    group: span.group,
    start: share(span.from),
    width: Math.max(0, share(span.to ?? now) - share(span.from)),
  }));
}

/** The groups one after the other, as parts of their sum. */
export function shares(time: TimeIn): Segment[] {
  const sum = Math.max(
    1,
    GROUPS.reduce((all, group) => all + time[group], 0),
  );
  let start = 0;
  return GROUPS.map((group) => {
    const width = (time[group] / sum) * 100;
    start += width;
    return { group, start: start - width, width };
  });
}
