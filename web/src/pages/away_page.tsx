import { LoaderCircle, Unplug } from "lucide-react";

import type { Link } from "../connection";
import { Blank } from "../parts/blank";

/** Before the first snapshot: on its way, or the daemon does not run. */
export function AwayPage({ link, retry }: { link: Link; retry: () => void }) {
  if (link.state !== "away") {
    return (
      <div className="loading" role="status">
        <LoaderCircle aria-hidden="true" size={20} className="turning" />
        <span>Looking at the agents</span>
      </div>
    );
  }
  return (
    <Blank icon={Unplug} title="The daemon does not answer">
      <p>It may be stopped. Start it on the machine where your agents run:</p>
      <pre className="code">qd</pre>
      <p>It is tried again by itself.</p>
      <button type="button" className="button" onClick={retry}>
        Try now
      </button>
    </Blank>
  );
}
