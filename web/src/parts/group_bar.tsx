import { duration } from "../amount";
import { GROUPS } from "../board";
import type { Segment, TimeIn } from "../spans";
import { groupName } from "../sub_state";

/** Stretches of time in the colours of their groups. */
export function GroupBar({ segments, label }: { segments: readonly Segment[]; label: string }) {
  return (
    <svg className="group-bar" viewBox="0 0 100 8" preserveAspectRatio="none" role="img" aria-label={label}>
      {segments.map(({ group, start, width }, index) => (
        <rect key={index} data-group={group} x={start} width={width} height="8" />
      ))}
    </svg>
  );
}

export const timeWords = (time: TimeIn) =>
  GROUPS.map((group) => `${groupName(group)} ${duration(time[group])}`).join(", ");

export function TimeLegend({ time }: { time: TimeIn }) {
  return (
    <ul className="legend">
      {GROUPS.map((group) => (
        <li key={group} data-group={group}>
          <span className="legend-dot" aria-hidden="true" />
          {groupName(group)} <span className="number">{duration(time[group])}</span>
        </li>
      ))}
    </ul>
  );
}
