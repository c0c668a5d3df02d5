import { ChartColumn } from "lucide-react";
import { useState } from "react";

import { money, projectOf, tokens } from "../amount";
import { type Asked, useAsked } from "../asked";
import type { Board } from "../board";
import { Blank } from "../parts/blank";
import { DayChart } from "../parts/day_chart";
import { GroupTimes } from "../parts/group_times";
import { RefusedBlank } from "../parts/refused_blank";
import { ShareBars } from "../parts/share_bars";
import { dayOf, daysUntil, everyDay } from "../usage_days";
import type { UsageBy, UsageReport } from "../wire";

const RANGES = [7, 30, 90] as const;

/** What the agents used: by day, model and project, and how long sessions waited. */
export function UsagePage({ board }: { board: Board }) {
  const [days, setDays] = useState<(typeof RANGES)[number]>(30);
  const since = dayOf(daysUntil(Date.now(), days)[0]!);
  const path = (by: UsageBy) => `/api/usage?by=${by}&since=${since}`;
  const { asked: byDay, again } = useAsked<UsageReport>(path("day"));
  const { asked: byModel } = useAsked<UsageReport>(path("model"));
  const { asked: byProject } = useAsked<UsageReport>(path("project"));
  return (
    <div className="page usage">
      <div className="ranges" role="group" aria-label="Range">
        {RANGES.map((range) => (
          <button key={range} type="button" aria-pressed={range === days} onClick={() => setDays(range)}>
            {range} days
          </button>
        ))}
      </div>
      {byDay.state === "refused" ? (
        <RefusedBlank refused={byDay.refused} again={again} />
      ) : (
        <>
          <Totals report={byDay} days={days} />
          <Plot title="Cost by day" report={byDay}>
            {(report) => <DayChart days={everyDay(report.rows, daysUntil(Date.now(), days))} />}
          </Plot>
          <div className="plots">
            <Plot title="By model" report={byModel}>
              {(report) => <ShareBars rows={report.rows} nameOf={(key) => key} />}
            </Plot>
            <Plot title="By project" report={byProject}>
              {(report) => <ShareBars rows={report.rows} nameOf={projectOf} />}
            </Plot>
          </div>
        </>
      )}
      <section className="part">
        <h2>Time in each group</h2>
        <p className="quiet">
          The newest sessions of the board: how long each worked, and how long it waited for you.
        </p>
        <GroupTimes board={board} />
      </section>
    </div>
  );
}

function Totals({ report, days }: { report: Asked<UsageReport>; days: number }) {
  if (report.state !== "there") return <p className="quiet loading-line">Adding up</p>;
  const { totals } = report.value;
  const numbers = [
    ["Cost", money(totals.totalCost, totals.estimated)],
    ["A day", money(totals.totalCost / days, totals.estimated)],
    ["Tokens", tokens(totals.totalTokens)],
    ["Input", tokens(totals.inputTokens)],
    ["Output", tokens(totals.outputTokens)],
    ["Cache reads", tokens(totals.cacheReadTokens)],
    ["Cache writes", tokens(totals.cacheCreationTokens)],
  ] as const;
  return (
    <dl className="totals">
      {numbers.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd className="number">{value}</dd>
        </div>
      ))}
    </dl>
  );
}

interface PlotProps {
  title: string;
  report: Asked<UsageReport>;
  children: (report: UsageReport) => React.ReactNode;
}

function Plot({ title, report, children }: PlotProps) {
  return (
    <section className="part">
      <h2>{title}</h2>
      {report.state === "refused" && <p className="quiet">Not known: {report.refused.message}.</p>}
      {report.state === "there" && report.value.rows.length === 0 && (
        <Blank icon={ChartColumn} title="Nothing was used" />
      )}
      {report.state === "there" && report.value.rows.length > 0 && children(report.value)}
    </section>
  );
}
