import { CircleStop, Send } from "lucide-react";

import { sessionOffer } from "../actions";
import { useAttempt } from "../attempts";
import { commandName, prompt } from "../commands";
import { drafts, useDraft } from "../drafts";
import { useNarrow } from "../narrow";
import type { Card } from "../wire";
import { ActButton } from "./act_button";
import { CommandButton } from "./command_acts";
import { TextBox } from "./text_box";

/** The next prompt of a driven session. What is typed while it works waits here. */
export function Composer({ card }: { card: Card }) {
  const offer = sessionOffer(card);
  const narrow = useNarrow();
  const text = useDraft(card.sessionId).prompt ?? "";
  const sending = useAttempt(commandName(card, "input"))?.state === "sending";
  if (card.agentState.state === "session_ended" && !offer.prompt) {
    return (
      <p className="composer-over">It has ended. {offer.goOn && "Resume begins it again where it was."}</p>
    );
  }
  const locked = sending || !offer.prompt;
  const send = () => {
    if (!locked) void prompt(card, text);
  };
  return (
    <div className="composer">
      <div className="prompt-box">
        <TextBox
          label="Next prompt"
          placeholder={offer.prompt ? "Next prompt" : waitingWords(card)}
          value={text}
          locked={sending}
          reply
          // A phone's keyboard has no Shift and Enter.
          enterSends={!narrow}
          onChange={(typed) => drafts.prompt(card.sessionId, typed)}
          onSubmit={send}
        />
        {offer.interrupt && !narrow && (
          <CommandButton card={card} verb="interrupt" icon={CircleStop} look="plain">
            Interrupt
          </CommandButton>
        )}
        <ActButton look="strong" icon={Send} locked={locked || text.trim() === ""} onPress={send}>
          Send
        </ActButton>
      </div>
      {text.trim() !== "" && !offer.prompt && <p className="composer-why">{waitingWords(card)}</p>}
    </div>
  );
}

function waitingWords({ requests, agentState }: Card): string {
  if (requests.length > 0) return "It waits for the answer above";
  if (agentState.state === "paused" || agentState.state === "budget_exceeded")
    return "It is paused: resume it first";
  return agentState.group === "autonomous"
    ? "It is at work; you can send when it is done"
    : "It takes no prompt now";
}
