import { TriangleAlert } from "lucide-react";
import { useEffect, useState } from "react";

import { ask } from "../api";
import { TROUBLES_EVERY_MS } from "../limits";
import type { About, Trouble } from "../wire";

/** Says what is wrong with the daemon itself, while it is wrong. */
export function TroubleBanner() {
  const troubles = useTroubles();
  return troubles.map(({ kind, what, advice }) => (
    <div key={`${kind} ${what}`} className="banner" role="alert" data-trouble={kind}>
      <TriangleAlert aria-hidden="true" size={16} />
      <p>
        {what}. {advice}
      </p>
    </div>
  ));
}

/** Asked for now and then: few change while somebody looks. */
function useTroubles(): readonly Trouble[] {
  const [troubles, setTroubles] = useState<readonly Trouble[]>([]);
  useEffect(() => {
    const ended = new AbortController();
    const look = async () => {
      try {
        const about = await ask<About>("/api/health", ended.signal);
        setTroubles(about.troubles);
      } catch {
        // A daemon that does not answer is what the other banner tells of.
      }
    };
    void look();
    const timer = setInterval(() => document.hidden || void look(), TROUBLES_EVERY_MS);
    return () => {
      clearInterval(timer);
      ended.abort();
    };
  }, []);
  return troubles;
}
