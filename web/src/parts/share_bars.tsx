import { money, tokens } from "../amount";
import type { UsageRow } from "../wire";
import { Folded } from "./folded";

interface Props {
  rows: readonly UsageRow[];
  nameOf: (key: string) => string;
}

const SHOWN = 10;

/** Who used most, with a bar for each. */
export function ShareBars({ rows, nameOf }: Props) {
  const sorted = [...rows].sort((a, b) => b.totalCost - a.totalCost || b.totalTokens - a.totalTokens);
  const most = Math.max(...sorted.map((row) => row.totalCost), 0.000_001);
  return (
    <Folded all={sorted} shownMax={SHOWN} noun="rows">
      {(shown) => (
        <ol className="shares">
          {shown.map((row) => (
            <li key={row.key ?? ""}>
              <span className="share-name" title={row.key}>
                {row.key === undefined ? "not told" : nameOf(row.key)}
              </span>
              <span className="share-tokens number">{tokens(row.totalTokens)}</span>
              <span className="share-cost number">{money(row.totalCost, row.estimated)}</span>
              <svg className="share-bar" viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">
                <rect className="run-rail" width="100" height="4" />
                <rect className="chart-bar" width={(row.totalCost / most) * 100} height="4" />
              </svg>
            </li>
          ))}
        </ol>
      )}
    </Folded>
  );
}
