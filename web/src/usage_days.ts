/** Days of the operator's calendar. Pure. */

import type { UsageRow } from "./wire";

export interface Day {
  /** "2026-11-16" */
  day: string;
  cost: number;
  tokens: number;
  estimated: boolean;
}

/** The last days, oldest first, each at noon: no change of the clock moves a noon into another day. */
export function daysUntil(now: number, count: number): Date[] {
  const last = new Date(now);
  return Array.from({ length: count }, (_, index) => {
    const back = count - 1 - index;
    return new Date(last.getFullYear(), last.getMonth(), last.getDate() - back, 12);
  });
}

export function dayOf(date: Date): string {
  const two = (part: number) => String(part).padStart(2, "0");
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

/** A row for each day, also for those without any use. */
export function everyDay(rows: readonly UsageRow[], days: readonly Date[]): Day[] {
  const known = new Map(rows.map((row) => [row.key, row]));
  return days.map(dayOf).map((day) => {
    const row = known.get(day);
    return {
      day,
      cost: row?.totalCost ?? 0,
      tokens: row?.totalTokens ?? 0,
      estimated: row?.estimated ?? false,
    };
  });
}

/** A round number at or above the largest: where the axis ends. */
export function roundUp(value: number): number {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].map((step) => step * power).find((step) => step >= value) ?? value;
}
