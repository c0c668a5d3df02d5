import { Unplug } from "lucide-react";

import { clock } from "../amount";
import { useNow } from "../clock";
import type { Link } from "../connection";
import { STALE_MS } from "../limits";

/** Says that the cards may be old. A line that is back at once is not worth a word. */
export function LinkBanner({ link, retry }: { link: Link; retry: () => void }) {
  const since = link.state === "away" ? link.since : undefined;
  const isStranger = link.state === "away" && link.isStranger;
  const stale = useNow((now) => (since !== undefined && now - since >= STALE_MS ? 1 : 0));
  if (since === undefined || stale === 0) return null;
  return (
    <div className="banner" role="alert">
      <Unplug aria-hidden="true" size={16} />
      <p>
        {isStranger && "Another program answers at this address: start the daemon with `qd`. "}
        Not connected since {clock(since)}. What you see was true then; it is tried again by itself.
      </p>
      <button type="button" className="button" onClick={retry}>
        Try now
      </button>
    </div>
  );
}
