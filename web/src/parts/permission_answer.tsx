import { Check, X } from "lucide-react";

import { allowEdited, denied, type Offer } from "../actions";
import { ActButton } from "./act_button";
import type { Answering } from "./request_box";
import { TextBox } from "./text_box";
import { useOpened } from "./use_opened";

interface Props extends Answering {
  offer: Extract<Offer, { kind: "permission" }>;
}

/** Allow, deny, and what lies between. */
export function PermissionAnswer({ offer, request, draft, locked, front, change, send }: Props) {
  const { open } = draft;
  const opened = useOpened();
  const toggle = (which: NonNullable<typeof open>) => {
    opened.now();
    change({ open: open === which ? undefined : which });
  };
  const command = draft.command ?? offer.command ?? "";
  return (
    <>
      {open === "message" && offer.canExplain && (
        <div className="answer-more">
          <TextBox
            label="Why it is denied"
            placeholder="What it should do instead"
            value={draft.message ?? ""}
            locked={locked}
            focus={opened.isNow}
            onChange={(message) => change({ message })}
            onSubmit={() => send(denied(draft.message))}
          />
          <ActButton look="strong" locked={locked} onPress={() => send(denied(draft.message))}>
            Deny with this message
          </ActButton>
        </div>
      )}
      {open === "edit" && offer.command !== undefined && (
        <div className="answer-more">
          <TextBox
            label="Command"
            code
            value={command}
            locked={locked}
            focus={opened.isNow}
            onChange={(text) => change({ command: text })}
            onSubmit={() => command.trim() !== "" && send(allowEdited(request, command))}
          />
          <ActButton
            look="strong"
            locked={locked || command.trim() === ""}
            onPress={() => send(allowEdited(request, command))}
          >
            Allow this command
          </ActButton>
        </div>
      )}
      {open === "always" && offer.always.length > 0 && (
        <div className="answer-more">
          <ul className="kept" aria-label="What is kept">
            {offer.always.map((rule) => (
              <li key={rule}>{rule}</li>
            ))}
          </ul>
          <ActButton look="strong" locked={locked} onPress={() => send({ type: "allow", scope: "always" })}>
            Always allow this
          </ActButton>
        </div>
      )}
      <div className="acts" role="group" aria-label="Answer">
        <ActButton
          look="strong"
          icon={Check}
          locked={locked}
          {...(front ? { hint: "y" } : {})}
          onPress={() => send({ type: "allow" })}
        >
          Allow
        </ActButton>
        <ActButton
          icon={X}
          locked={locked}
          {...(front ? { hint: "n" } : {})}
          onPress={() => send({ type: "deny" })}
        >
          Deny
        </ActButton>
        {offer.always.length > 0 && (
          <ActButton
            look="quiet"
            locked={locked}
            expanded={open === "always"}
            onPress={() => toggle("always")}
          >
            Always
          </ActButton>
        )}
        {offer.canExplain && (
          <ActButton
            look="quiet"
            locked={locked}
            expanded={open === "message"}
            onPress={() => toggle("message")}
          >
            Deny with message
          </ActButton>
        )}
        {offer.command !== undefined && (
          <ActButton look="quiet" locked={locked} expanded={open === "edit"} onPress={() => toggle("edit")}>
            Edit and allow
          </ActButton>
        )}
      </div>
    </>
  );
}
