import { Ban, CircleCheck, CircleEllipsis, CircleStop, CircleX, type LucideIcon } from "lucide-react";

import { shortDuration } from "../amount";
import { useNow } from "../clock";
import { RUNS_SHOWN_MAX } from "../limits";
import type { RunView } from "../wire";

const OUTCOMES: Readonly<Record<string, { icon: LucideIcon; word: string }>> = {
  ok: { icon: CircleCheck, word: "succeeded" },
  error: { icon: CircleX, word: "returned an error" },
  failed: { icon: CircleX, word: "failed" },
  denied: { icon: Ban, word: "denied" },
  interrupted: { icon: CircleStop, word: "interrupted" },
};

const RUNNING = { icon: CircleEllipsis, word: "running" };

/** Tool and hook runs, the newest first, each where it lies between the first and now. */
export function RunTimeline({ runs }: { runs: readonly RunView[] }) {
  const lasting = runs.some((run) => run.endedAt === undefined);
  const now = useNow((at) => (lasting ? at : 0));
  if (runs.length === 0) return <p className="quiet">No tool ran yet.</p>;
  const newest = [...runs].sort((a, b) => b.startedAt - a.startedAt).slice(0, RUNS_SHOWN_MAX);
  const from = newest.at(-1)!.startedAt;
  const to = Math.max(from + 1, ...newest.map((run) => run.endedAt ?? now));
  return (
    <ol className="runs">
      {newest.map((run) => {
        const { icon: Icon, word } = (run.outcome && OUTCOMES[run.outcome]) || RUNNING;
        const end = Math.max(run.endedAt ?? now, run.startedAt);
        const start = ((run.startedAt - from) / (to - from)) * 100;
        const width = Math.max(0.8, ((end - run.startedAt) / (to - from)) * 100);
        return (
          <li key={run.id} className="run" data-outcome={run.outcome ?? "running"}>
            <Icon aria-label={word} role="img" size={14} />
            <span className="run-name">{run.name}</span>
            <span className="run-detail" title={run.detail}>
              {run.detail}
            </span>
            <span className="run-time number">{shortDuration(end - run.startedAt)}</span>
            <svg className="run-bar" viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">
              <rect className="run-rail" width="100" height="4" />
              <rect className="run-span" x={Math.min(start, 100 - width)} width={width} height="4" />
            </svg>
          </li>
        );
      })}
    </ol>
  );
}
