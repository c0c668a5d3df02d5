import { money, tokens } from "../amount";
import type { UsageView } from "../wire";

/** What one session used. */
export function UsageTable({ usage }: { usage: UsageView }) {
  const lines: readonly (readonly [string, string | undefined])[] = [
    ["Model", usage.model],
    ["Context", contextOf(usage)],
    ["Input", count(usage.inputTokens)],
    ["Output", count(usage.outputTokens)],
    ["Cache reads", count(usage.cacheReadTokens)],
    ["Cache writes", count(usage.cacheCreationTokens)],
    ["All tokens", count(usage.totalTokens)],
    ["Cost", usage.costUsd === undefined ? undefined : money(usage.costUsd, usage.estimated)],
  ];
  const known = lines.filter(([, value]) => value !== undefined);
  if (known.length === 0) return <p className="quiet">No usage was reported yet.</p>;
  return (
    <dl className="pairs">
      {known.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd className="number">{value}</dd>
        </div>
      ))}
    </dl>
  );
}

const count = (value: number | undefined) => (value === undefined ? undefined : tokens(value));

function contextOf({ contextTokens, contextWindow }: UsageView): string | undefined {
  if (contextTokens === undefined) return undefined;
  if (!contextWindow) return tokens(contextTokens);
  return `${tokens(contextTokens)} of ${tokens(contextWindow)} (${Math.round((contextTokens / contextWindow) * 100)}%)`;
}
