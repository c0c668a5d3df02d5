import { KeyRound, Unplug } from "lucide-react";

import type { Refused } from "../api";
import { Blank } from "./blank";

/** An answer that did not come. */
export function RefusedBlank({ refused, again }: { refused: Refused; again: () => void }) {
  return (
    <Blank
      icon={refused.signedOut ? KeyRound : Unplug}
      title={refused.signedOut ? "Signed out" : "No answer to show"}
    >
      <p>{refused.message}</p>
      <button type="button" className="button" onClick={again}>
        Try again
      </button>
    </Blank>
  );
}
