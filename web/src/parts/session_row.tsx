import { ChevronDown, X } from "lucide-react";
import { memo } from "react";

import { money, projectOf, tokens } from "../amount";
import { canBeDismissed, dismissName } from "../board";
import { contextShare, fullPlaceOf, placeOf, titleOfCard } from "../card_text";
import { harnessName } from "../harness";
import { sessionPath } from "../route";
import { iconOf } from "../sub_state";
import type { Card } from "../wire";
import { ContextGauge } from "./context_gauge";
import { Elapsed } from "./elapsed";
import { Link } from "./link";
import { RequestBox } from "./request_box";
import { SessionActs } from "./session_acts";
import { Visible } from "./visible";

interface Props {
  card: Card;
  /** With what it waits for and what can be done below the line. */
  open: boolean;
  onOpen: (sessionId: string) => void;
  onDismiss: (card: Card) => void;
}

/** A session on one line. */
export const SessionRow = memo(function SessionRow({ card, open, onOpen, onDismiss }: Props) {
  const { agentState, usage, where } = card;
  const Icon = iconOf(card);
  const share = contextShare(card);
  return (
    <>
      <h3 className="row-title">
        <Link to={sessionPath(card.sessionId)}>{titleOfCard(card)}</Link>
      </h3>
      <span className="badge">
        <Icon aria-hidden="true" size={14} />
        <span className="badge-text">
          <Visible text={agentState.label} />
        </span>
      </span>
      <Elapsed since={agentState.since} />
      <span className="row-place" title={card.cwd}>
        {card.cwd !== undefined && <Visible text={projectOf(card.cwd)} reading="code" />}
        {card.branch !== undefined && (
          <span className="row-branch">
            {" "}
            <Visible text={card.branch} reading="code" />
          </span>
        )}
      </span>
      <span className="row-harness" title={where && `Runs in ${fullPlaceOf(where)}`}>
        {[harnessName(card.harness), card.driven ? "driven" : placeOf(where)].filter(Boolean).join(" · ")}
      </span>
      <span className="row-number number">
        {usage.totalTokens !== undefined && tokens(usage.totalTokens)}
      </span>
      <span className="row-number number">
        {usage.costUsd !== undefined && money(usage.costUsd, usage.estimated)}
      </span>
      <span className="row-gauge">
        {share !== undefined && (
          <ContextGauge share={share} used={usage.contextTokens ?? 0} window={usage.contextWindow ?? 0} />
        )}
      </span>
      <span className="row-act">
        <button
          type="button"
          className="icon-button"
          aria-label={card.requests.length > 0 ? "Answer" : "Actions"}
          aria-expanded={open}
          onClick={() => onOpen(card.sessionId)}
        >
          <ChevronDown aria-hidden="true" size={14} />
        </button>
        {canBeDismissed(card) && (
          <button
            type="button"
            className="icon-button"
            aria-label={dismissName(card)}
            title={`${dismissName(card)} (e)`}
            onClick={() => onDismiss(card)}
          >
            <X aria-hidden="true" size={14} />
          </button>
        )}
      </span>
      {open && (
        <div className="row-more">
          {card.requests.map((request) => (
            <RequestBox key={request.key ?? request.requestId} card={card} request={request} />
          ))}
          <SessionActs card={card} onDismiss={onDismiss} />
        </div>
      )}
    </>
  );
});
