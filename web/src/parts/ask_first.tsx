import { type ReactNode, useEffect, useRef, useState } from "react";

import { STOP_ASK_MS } from "../limits";
import { ActButton } from "./act_button";

interface Props {
  /** "Stop it?" */
  question: string;
  /** "Yes, stop". */
  yes: string;
  locked: boolean;
  onYes: () => void;
  /** What is there before; its press asks. */
  children: (ask: () => void) => ReactNode;
}

/** Asks once, in its own place, and takes silence for no. */
export function AskFirst({ question, yes, locked, onYes, children }: Props) {
  const [asked, setAsked] = useState(false);
  useEffect(() => {
    if (!asked) return;
    const timer = setTimeout(() => setAsked(false), STOP_ASK_MS);
    return () => clearTimeout(timer);
  }, [asked]);
  const place = useRef<HTMLSpanElement>(null);
  const before = useRef(asked);
  useEffect(() => {
    if (before.current === asked) return;
    before.current = asked;
    // What was pressed is gone: its place has the focus, and never on "Yes".
    const fields = place.current?.querySelectorAll<HTMLElement>("button, select");
    if (document.activeElement === document.body) fields?.[fields.length - 1]?.focus();
  }, [asked]);
  if (!asked) {
    return (
      <span ref={place} className="ask-place">
        {children(() => setAsked(true))}
      </span>
    );
  }
  return (
    <span ref={place} className="ask-first" role="group" aria-label={question}>
      <span role="status">{question}</span>
      <ActButton
        look="plain"
        locked={locked}
        onPress={() => {
          setAsked(false);
          onYes();
        }}
      >
        {yes}
      </ActButton>
      <ActButton look="quiet" onPress={() => setAsked(false)}>
        No
      </ActButton>
    </span>
  );
}
