import { Check, X } from "lucide-react";

import { approved, type Offer, rejected } from "../actions";
import { ActButton } from "./act_button";
import type { Answering } from "./request_box";
import { TextBox } from "./text_box";
import { useOpened } from "./use_opened";

interface Props extends Answering {
  offer: Extract<Offer, { kind: "plan" }>;
}

/** Approve, with the mode that follows, or send back with what is wrong. */
export function PlanAnswer({ offer, draft, locked, front, read, change, send }: Props) {
  const opened = useOpened();
  const isOpen = draft.open === "message";
  // A mode that is not offered any more is not sent.
  const mode = offer.modes.find((each) => each === draft.mode);
  return (
    <>
      {isOpen && (
        <div className="answer-more">
          <TextBox
            label="What is wrong with the plan"
            placeholder="What should be different"
            value={draft.message ?? ""}
            locked={locked}
            focus={opened.isNow}
            onChange={(message) => change({ message })}
            onSubmit={() => send(rejected(draft.message))}
          />
          <ActButton look="strong" locked={locked} onPress={() => send(rejected(draft.message))}>
            Reject with this feedback
          </ActButton>
        </div>
      )}
      <div className="acts" role="group" aria-label="Answer">
        {offer.modes.length > 0 && (
          <select
            className="field mode-choice"
            aria-label="Mode after approval"
            value={mode ?? ""}
            disabled={locked}
            onChange={(event) => change({ mode: event.target.value })}
          >
            <option value="">Then in a mode of its choice</option>
            {offer.modes.map((each) => (
              <option key={each} value={each}>
                Then in mode {each}
              </option>
            ))}
          </select>
        )}
        {offer.canAllow && (
          <ActButton
            look="strong"
            icon={Check}
            locked={locked || !read}
            {...(front && read ? { hint: "y" } : {})}
            onPress={() => send(approved(mode))}
          >
            Approve
          </ActButton>
        )}
        <ActButton
          icon={X}
          locked={locked}
          {...(front ? { hint: "n" } : {})}
          onPress={() => send(rejected(undefined))}
        >
          Reject
        </ActButton>
        <ActButton
          look="quiet"
          locked={locked}
          expanded={isOpen}
          onPress={() => {
            opened.now();
            change({ open: isOpen ? undefined : "message" });
          }}
        >
          Reject with feedback
        </ActButton>
      </div>
    </>
  );
}
