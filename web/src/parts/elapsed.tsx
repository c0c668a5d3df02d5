import { duration } from "../amount";
import { useNow } from "../clock";

/** How long something lasts, counting. Screen readers get the moment it began. */
export function Elapsed({ since }: { since: number }) {
  const text = useNow((now) => duration(now - since));
  return (
    <time
      className="elapsed"
      dateTime={new Date(since).toISOString()}
      title={new Date(since).toLocaleString()}
    >
      {text}
    </time>
  );
}
