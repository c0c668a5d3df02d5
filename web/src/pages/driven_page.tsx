import { CircleStop } from "lucide-react";

import { lastErrorOf, sessionOffer } from "../actions";
import { canBeDismissed, dismissName } from "../board";
import { titleOfCard } from "../card_text";
import { useNow } from "../clock";
import { dismiss } from "../commands";
import type { Past } from "../conversation";
import { useDraft } from "../drafts";
import { retryAfterMs } from "../driven";
import { useNarrow } from "../narrow";
import { ActButton } from "../parts/act_button";
import { CardFacts } from "../parts/card_facts";
import { CommandButton, CommandTroubles, DrivingActs, StopButton } from "../parts/command_acts";
import { Composer } from "../parts/composer";
import { ConversationPane } from "../parts/conversation_pane";
import { Elapsed } from "../parts/elapsed";
import { YoloSwitch } from "../parts/policy_acts";
import { RequestBox } from "../parts/request_box";
import { Leftovers } from "../parts/session_acts";
import { Place } from "../parts/session_card";
import { Visible } from "../parts/visible";
import { iconOf } from "../sub_state";
import { useConversation } from "../use_conversation";
import type { Card } from "../wire";

/** The head of a session that we drive: what it is, what it does, and what can be asked of it. */
export function DrivenHead({ card, past }: { card: Card; past: Past | undefined }) {
  const Icon = iconOf(card);
  const narrow = useNarrow();
  const { stop, yolo, interrupt } = sessionOffer(card);
  const error = lastErrorOf(card);
  return (
    <header className="session-head is-driven">
      <div className="card-head">
        <h2 className="session-title">{titleOfCard(card)}</h2>
        {yolo && <YoloSwitch card={card} offer={yolo} />}
      </div>
      <div className="driven-line">
        <p className="card-state">
          <span className="badge">
            <Icon aria-hidden="true" size={14} />
            <Visible text={card.agentState.label} />
          </span>
          <Elapsed since={card.agentState.since} />
          <Place card={card} />
        </p>
        <div className="card-acts" role="group" aria-label="Session">
          <DrivingActs card={card} />
          {/* A desk has it beside the box. */}
          {narrow && interrupt && (
            <CommandButton card={card} verb="interrupt" icon={CircleStop}>
              Interrupt
            </CommandButton>
          )}
          {stop && <StopButton card={card} />}
          {canBeDismissed(card) && (
            <ActButton look="quiet" onPress={() => void dismiss(card)}>
              {dismissName(card)}
            </ActButton>
          )}
        </div>
      </div>
      <CardFacts card={card} />
      {error !== undefined && (
        <p className="card-error">
          <Visible text={error} /> <RetryIn card={card} past={past} />
        </p>
      )}
      <CommandTroubles card={card} />
    </header>
  );
}

/** "Tried again in 3s", while a timer runs for it. */
function RetryIn({ card, past }: { card: Card; past: Past | undefined }) {
  const after = card.drive?.state === "Error" ? retryAfterMs(past?.state) : undefined;
  const due = after === undefined ? 0 : (card.drive?.since ?? 0) + after;
  const left = useNow((now) => (due === 0 ? 0 : Math.max(0, Math.ceil((due - now) / 1_000))));
  if (due === 0) return null;
  return <span className="number">{left > 0 ? `Tried again in ${left}s.` : "Tried again now."}</span>;
}

interface DrivenProps {
  card: Card;
  past: Past | undefined;
  onEarlier: () => void;
}

/** The conversation, what it waits for, and the box for the next prompt. */
export function DrivenConversation({ card, past, onEarlier }: DrivenProps) {
  const conversation = useConversation(card.sessionId, past);
  const draft = useDraft(card.sessionId);
  if (!past && conversation.steps.length === 0)
    return <p className="quiet loading-line">Reading the conversation</p>;
  return (
    <>
      <ConversationPane card={card} conversation={conversation} onEarlier={onEarlier} />
      {card.requests.length > 0 && (
        <section className="action-required" aria-label="Action required">
          <h3>Action required</h3>
          {card.requests.map((request) => (
            <RequestBox key={request.key ?? request.requestId} card={card} request={request} />
          ))}
        </section>
      )}
      {draft.left.length > 0 && <Leftovers card={card} canPrompt={sessionOffer(card).prompt} />}
      <Composer card={card} />
    </>
  );
}
