import { useEffect, useState } from "react";

import { ask } from "../api";
import type { Board } from "../board";
import { titleOfCard } from "../card_text";
import { SPANS_SESSIONS_MAX } from "../limits";
import { sessionPath } from "../route";
import { shares, timeIn } from "../spans";
import type { GroupSpan, SessionDetail } from "../wire";
import { GroupBar, TimeLegend, timeWords } from "./group_bar";
import { Link } from "./link";

/** For the newest sessions, how their time is split. */
export function GroupTimes({ board }: { board: Board }) {
  const newest = [...board.cards.values()]
    .sort((a, b) => b.lastSignal - a.lastSignal)
    .slice(0, SPANS_SESSIONS_MAX);
  const spans = useSpans(newest.map((card) => card.sessionId));
  const known = newest.filter((card) => (spans.get(card.sessionId)?.length ?? 0) > 0);
  const now = Date.now();
  if (known.length === 0) return <p className="quiet">Nothing is known of the board's sessions.</p>;
  const whole = timeIn(
    known.flatMap((card) => spans.get(card.sessionId) ?? []),
    now,
  );
  return (
    <>
      <TimeLegend time={whole} />
      <ol className="times">
        {known.map((card) => {
          const time = timeIn(spans.get(card.sessionId) ?? [], now);
          return (
            <li key={card.sessionId}>
              <Link to={sessionPath(card.sessionId)} className="share-name">
                {titleOfCard(card)}
              </Link>
              <GroupBar segments={shares(time)} label={timeWords(time)} />
            </li>
          );
        })}
      </ol>
    </>
  );
}

/** Asked one after the other, once for each session: it is a plot, not a board. */
function useSpans(sessionIds: readonly string[]): ReadonlyMap<string, readonly GroupSpan[]> {
  const [spans, setSpans] = useState<ReadonlyMap<string, readonly GroupSpan[]>>(new Map());
  const wanted = sessionIds.find((id) => !spans.has(id));
  useEffect(() => {
    if (wanted === undefined) return;
    const abort = new AbortController();
    const keep = (found: readonly GroupSpan[]) => setSpans((known) => new Map(known).set(wanted, found));
    ask<SessionDetail>(`/api/live/sessions/${encodeURIComponent(wanted)}`, abort.signal).then(
      (detail) => keep(detail.groups ?? []),
      () => {
        if (!abort.signal.aborted) keep([]);
      },
    );
    return () => abort.abort();
  }, [wanted]);
  return spans;
}
