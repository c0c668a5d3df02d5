import { MessagesSquare } from "lucide-react";
import { useCallback, useLayoutEffect, useRef } from "react";

import { useAttempt } from "../attempts";
import { retryName, retryRun } from "../commands";
import type { Conversation } from "../conversation";
import type { Card } from "../wire";
import { ActButton } from "./act_button";
import { Blank } from "./blank";
import { type RetryRun, StepLines } from "./step_lines";

const NEAR_PX = 80;

interface Props {
  card: Card;
  conversation: Conversation;
  onEarlier: () => void;
}

/** A driven session's conversation, kept at its end while the reader is there. */
export function ConversationPane({ card, conversation, onEarlier }: Props) {
  const { steps, earlier, live, thoughts } = conversation;
  const pane = useRef<HTMLDivElement>(null);
  const atEnd = useRef(true);
  const before = useRef({ first: "", height: 0 });
  const first = steps[0]?.id ?? "";
  const toEnd = () => {
    const { current: box } = pane;
    if (box && atEnd.current) box.scrollTop = box.scrollHeight;
  };
  useLayoutEffect(() => {
    toEnd();
    const { current: box } = pane;
    const was = before.current;
    // Earlier messages came in above: what is read stays where it is.
    if (box && !atEnd.current && was.first !== first) box.scrollTop += box.scrollHeight - was.height;
    before.current = { first, height: box?.scrollHeight ?? 0 };
  });
  useLayoutEffect(() => {
    // What is asked below takes its room from here.
    const watched = new ResizeObserver(toEnd);
    if (pane.current) watched.observe(pane.current);
    return () => watched.disconnect();
  }, []);
  const scrolled = () => {
    const { current: box } = pane;
    if (box) atEnd.current = box.scrollHeight - box.scrollTop - box.clientHeight < NEAR_PX;
  };
  const current = useRef(card);
  current.current = card;
  // The same function for all of its life: lines that did not change are not drawn again.
  const retry = useCallback<RetryRun>(
    (kind, run) => <RetryRunButton card={current.current} kind={kind} run={run} />,
    [],
  );
  const isEmpty = steps.length === 0 && live === undefined;
  return (
    <div
      className="transcript conversation"
      ref={pane}
      onScroll={scrolled}
      tabIndex={0}
      role="log"
      aria-label="Conversation"
    >
      {earlier > 0 && (
        <button type="button" className="quiet-button older" onClick={onEarlier}>
          {earlier === 1 ? "1 earlier message" : `${earlier} earlier messages`}
        </button>
      )}
      {isEmpty ? (
        <Blank icon={MessagesSquare} title="Nothing is said yet">
          <p>The conversation shows here as it happens.</p>
        </Blank>
      ) : (
        <StepLines steps={steps} thoughts={thoughts} live={live} retry={retry} />
      )}
    </div>
  );
}

interface RetryProps {
  card: Card;
  kind: "tools" | "hooks";
  run: string;
}

/** Where nothing can be tried again any more, a press says so. */
function RetryRunButton({ card, kind, run }: RetryProps) {
  const attempt = useAttempt(retryName(card, run));
  return (
    <p className="step-retry">
      {attempt?.state !== "taken" && (
        <ActButton
          look="plain"
          locked={attempt?.state === "sending" || !card.capabilities.canRetry}
          onPress={() => void retryRun(card, kind, run)}
        >
          Retry
        </ActButton>
      )}
      {attempt && "why" in attempt && <span className="step-error">{attempt.why}</span>}
    </p>
  );
}
