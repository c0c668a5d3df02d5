import { FolderGit2, GitBranch } from "lucide-react";
import { memo } from "react";

import { lastErrorOf } from "../actions";
import { projectOf } from "../amount";
import { contextOf, titleOfCard } from "../card_text";
import { SUBAGENTS_SHOWN_MAX } from "../limits";
import { sessionPath } from "../route";
import { iconOf } from "../sub_state";
import type { Card, SubagentView } from "../wire";
import { CardFacts } from "./card_facts";
import { Elapsed } from "./elapsed";
import { Link } from "./link";
import { RequestBox } from "./request_box";
import { SessionActs } from "./session_acts";
import { Visible } from "./visible";

interface Props {
  card: Card;
  onDismiss: (card: Card) => void;
}

/** One session: who it is, what it does, what it waits for. */
export const SessionCard = memo(function SessionCard({ card, onDismiss }: Props) {
  const { agentState } = card;
  const Icon = iconOf(card);
  const error = lastErrorOf(card);
  const context = error === undefined ? contextOf(card) : undefined;
  return (
    <>
      <header className="card-head">
        <h3 className="card-title">
          <Link to={sessionPath(card.sessionId)}>{titleOfCard(card)}</Link>
        </h3>
        <Elapsed since={agentState.since} />
      </header>
      <p className="card-state">
        <span className="badge">
          <Icon aria-hidden="true" size={14} />
          <Visible text={agentState.label} />
        </span>
        <Place card={card} />
      </p>
      {context && (
        <p className={context.isCode ? "card-context is-code" : "card-context"}>
          <Visible text={context.text} reading={context.isCode ? "code" : "prose"} />
        </p>
      )}
      {error !== undefined && (
        <p className="card-error">
          <Visible text={error} />
        </p>
      )}
      {card.requests.map((request) => (
        <RequestBox key={request.key ?? request.requestId} card={card} request={request} />
      ))}
      <Subagents subagents={card.subagents} />
      <SessionActs card={card} onDismiss={onDismiss}>
        <CardFacts card={card} />
      </SessionActs>
    </>
  );
});

/** Project and branch. */
export function Place({ card }: { card: Card }) {
  return (
    <>
      {card.cwd !== undefined && (
        <span className="fact" title={card.cwd}>
          <FolderGit2 aria-hidden="true" size={12} />
          <Visible text={projectOf(card.cwd)} reading="code" />
        </span>
      )}
      {card.branch !== undefined && (
        <span className="fact branch" title={card.branch}>
          <GitBranch aria-hidden="true" size={12} />
          <Visible text={card.branch} reading="code" />
        </span>
      )}
    </>
  );
}

function Subagents({ subagents }: { subagents: readonly SubagentView[] }) {
  if (subagents.length === 0) return null;
  const hidden = subagents.length - SUBAGENTS_SHOWN_MAX;
  return (
    <ul className="subagents" aria-label="Subagents">
      {subagents.slice(0, SUBAGENTS_SHOWN_MAX).map((agent) => (
        <li key={agent.agentId}>
          <span className="subagent-kind">{agent.kind ?? "subagent"}</span>
          <span className="subagent-activity">{agent.activity}</span>
        </li>
      ))}
      {hidden > 0 && <li className="subagent-activity">{hidden} more</li>}
    </ul>
  );
}
