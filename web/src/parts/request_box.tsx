import { useMemo } from "react";

import { frontOf } from "../answer_keys";
import { type Offer, offerOf } from "../actions";
import { isLocked, progressOf, useAttempt, useAttempts } from "../attempts";
import { useNow } from "../clock";
import { decide } from "../commands";
import { drafts, NO_REQUEST_DRAFT, type RequestDraft, useDraft } from "../drafts";
import { useReadState } from "../readings";
import type { Card, Decision, RequestView } from "../wire";
import { PermissionAnswer } from "./permission_answer";
import { PlanAnswer } from "./plan_answer";
import { ProgressLine } from "./progress_line";
import { QuestionForm } from "./question_form";
import { RequestShown } from "./request_shown";

/** What the parts of an answer share. */
export interface Answering {
  request: RequestView;
  draft: RequestDraft;
  /** An answer is on its way. */
  locked: boolean;
  /** Keys act on this one. */
  front: boolean;
  /** The whole of it has been on the screen, and for a moment: it may be allowed. */
  read: boolean;
  change: (change: RequestDraft) => void;
  send: (decision: Decision) => void;
}

/** What an agent waits for, and the answers that it can be given from here. */
export function RequestBox({ card, request }: { card: Card; request: RequestView }) {
  const offer = useMemo(() => offerOf(card, request), [card, request]);
  if (offer.kind === "none") {
    return (
      <>
        <RequestShown request={request} />
        <p className="why-not">{offer.why}</p>
      </>
    );
  }
  return <Answerable card={card} request={request} offer={offer} />;
}

/** The agent's own dialog waits for an answer from here, for so long. */
function HiddenDialog({ until }: { until: number }) {
  const left = useNow((now) => Math.max(0, Math.ceil((until - now) / 1_000)));
  return <p className="why-not">Answer here within {left} s. Its own dialog is hidden meanwhile.</p>;
}

const RECORDING = "A recording: whatever you answer, it goes on as it did then.";

const READ_FIRST = {
  unread: "To allow it, read all of it first: unfold what is folded and scroll to the end.",
  cut: "It is too long to be shown whole. Allow it where the agent runs, or deny it.",
} as const;

interface Props {
  card: Card;
  request: RequestView;
  offer: Exclude<Offer, { kind: "none" }>;
}

function Answerable({ card, request, offer }: Props) {
  const { key } = offer;
  const progress = progressOf(request.answer, useAttempt(key));
  const state = useReadState(request);
  const isUnread = offer.kind !== "questions" && !isLocked(progress) && state in READ_FIRST;
  const answering: Answering = {
    request,
    draft: useDraft(card.sessionId).requests[key] ?? NO_REQUEST_DRAFT,
    locked: isLocked(progress),
    front: useAttempts(() => frontOf(card)?.key === key),
    read: state === "ready",
    change: (change) => drafts.change(card.sessionId, key, change),
    send: (decision) => void decide(request, decision),
  };
  return (
    <div className="answerable" data-key={key} data-reading={state}>
      {offer.kind === "questions" ? (
        <QuestionForm questions={offer.questions} {...answering} />
      ) : (
        <RequestShown request={request} />
      )}
      {request.way === "recording" && <p className="why-not">{RECORDING}</p>}
      {request.hiddenUntil !== undefined && <HiddenDialog until={request.hiddenUntil} />}
      <div className="answers">
        <ProgressLine progress={progress} />
        {isUnread && <p className="read-first">{READ_FIRST[state as keyof typeof READ_FIRST]}</p>}
        {offer.kind === "permission" && <PermissionAnswer offer={offer} {...answering} />}
        {offer.kind === "plan" && <PlanAnswer offer={offer} {...answering} />}
      </div>
    </div>
  );
}
