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
  const title = link.isStranger ? "Another program answers here" : "The daemon does not answer";
  return (
    <Blank icon={Unplug} title={title}>
      {link.isStranger ? (
        <p>
          It has taken this address and is not your daemon, so this page told it nothing. Stop it, then start
          the daemon on the machine where your agents run:
        </p>
      ) : (
        <p>It may be stopped. Start it on the machine where your agents run:</p>
      )}
      <pre className="code">qd</pre>
      <p>It is tried again by itself.</p>
      <button type="button" className="button" onClick={retry}>
        Try now
      </button>
    </Blank>
  );
}
