import { Check, X } from "lucide-react";

import { allowEdited, denied, type Offer } from "../actions";
import type { AllowScope } from "../wire";
import { ActButton } from "./act_button";
import type { Answering } from "./request_box";
import { TextBox } from "./text_box";
import { useOpened } from "./use_opened";
import { Visible } from "./visible";

interface Props extends Answering {
  offer: Extract<Offer, { kind: "permission" }>;
}

const SCOPES: Readonly<Record<AllowScope, string>> = {
  once: "Allow this once",
  session: "Allow for this session",
  always: "Always allow this",
};

/** Allow, deny, and what lies between. */
export function PermissionAnswer({ offer, request, draft, locked, front, read, change, send }: Props) {
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
            onSubmit={() => read && command.trim() !== "" && send(allowEdited(request, command))}
          />
          <ActButton
            look="strong"
            locked={locked || !read || command.trim() === ""}
            onPress={() => send(allowEdited(request, command))}
          >
            Allow this command
          </ActButton>
        </div>
      )}
      {open === "always" && offer.canAllow && offer.scopes.length > 0 && (
        <div className="answer-more">
          {offer.kept.length > 0 && (
            <ul className="kept" aria-label="What is kept">
              {offer.kept.map((rule) => (
                <li key={rule}>
                  <Visible text={rule} reading="code" />
                </li>
              ))}
            </ul>
          )}
          <div className="acts" role="group" aria-label="How far it is allowed">
            {offer.scopes.map((scope) => (
              <ActButton
                key={scope}
                look="strong"
                locked={locked || !read}
                onPress={() => send({ type: "allow", scope })}
              >
                {SCOPES[scope]}
              </ActButton>
            ))}
          </div>
        </div>
      )}
      <div className="acts" role="group" aria-label="Answer">
        {offer.canAllow && (
          <ActButton
            look="strong"
            icon={Check}
            locked={locked || !read}
            {...(front && read ? { hint: "y" } : {})}
            onPress={() => send({ type: "allow" })}
          >
            Allow
          </ActButton>
        )}
        <ActButton
          icon={X}
          locked={locked}
          {...(front ? { hint: "n" } : {})}
          onPress={() => send({ type: "deny" })}
        >
          Deny
        </ActButton>
        {offer.canAllow && offer.scopes.length > 0 && (
          <ActButton
            look="quiet"
            locked={locked}
            expanded={open === "always"}
            onPress={() => toggle("always")}
          >
            {offer.scopes.includes("always") ? "Always" : "For the session"}
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
