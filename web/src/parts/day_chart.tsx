import { money, tokens } from "../amount";
import { type Day, roundUp } from "../usage_days";

const HEIGHT = 160;
const WIDTH = 960;
const LEFT = 52;
const BOTTOM = 20;
const RIGHT = 12;

/** Cost by day as bars; the same numbers as a table for those who do not see bars. */
export function DayChart({ days }: { days: readonly Day[] }) {
  const top = roundUp(Math.max(...days.map((day) => day.cost)));
  const step = (WIDTH - LEFT - RIGHT) / days.length;
  const y = (cost: number) => 8 + (1 - cost / top) * (HEIGHT - BOTTOM - 8);
  const labelEvery = Math.ceil(days.length / 10);
  return (
    <figure className="chart">
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label="Cost by day">
        {[0, 0.5, 1].map((part) => (
          <g key={part}>
            <line className="chart-line" x1={LEFT} x2={WIDTH - RIGHT} y1={y(part * top)} y2={y(part * top)} />
            <text className="chart-text" x={LEFT - 8} y={y(part * top) + 4} textAnchor="end">
              {money(part * top)}
            </text>
          </g>
        ))}
        {days.map(({ day, cost, tokens: count, estimated }, index) => (
          <g key={day}>
            <rect className="chart-hit" x={LEFT + index * step} y={0} width={step} height={HEIGHT - BOTTOM}>
              <title>{`${day}: ${money(cost, estimated)}, ${tokens(count)} tokens`}</title>
            </rect>
            <rect
              className="chart-bar"
              x={LEFT + index * step + step * 0.15}
              width={step * 0.7}
              y={y(cost)}
              height={Math.max(0, y(0) - y(cost))}
              rx={1.5}
            />
            {(days.length - 1 - index) % labelEvery === 0 && (
              <text className="chart-text" x={LEFT + (index + 0.5) * step} y={HEIGHT - 5} textAnchor="middle">
                {shortDay(day)}
              </text>
            )}
          </g>
        ))}
      </svg>
      <table className="visually-hidden">
        <caption>Cost by day</caption>
        <tbody>
          {days.map(({ day, cost }) => (
            <tr key={day}>
              <th scope="row">{day}</th>
              <td>{money(cost)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </figure>
  );
}

function shortDay(day: string): string {
  return new Date(`${day}T12:00`).toLocaleDateString(undefined, { day: "numeric", month: "short" });
}
