import { tokens } from "../amount";

interface Props {
  /** 0 to 1. */
  share: number;
  used: number;
  window: number;
}

/** How full the model's memory is. */
export function ContextGauge({ share, used, window }: Props) {
  const percent = Math.round(share * 100);
  const level = share >= 0.9 ? "full" : share >= 0.7 ? "high" : "fine";
  return (
    <span
      className="gauge"
      role="img"
      data-level={level}
      aria-label={`Context ${percent}% full`}
      title={`Context: ${tokens(used)} of ${tokens(window)} tokens`}
    >
      <svg viewBox="0 0 40 6" aria-hidden="true">
        <rect className="gauge-all" width="40" height="6" rx="2" />
        <rect className="gauge-used" width={Math.max(2, share * 40)} height="6" rx="2" />
      </svg>
      {percent}%
    </span>
  );
}
