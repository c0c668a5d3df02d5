import { AppWindow, Copy, Ellipsis, MessageSquare, Octagon, Pause, Send, X } from "lucide-react";
import { type ReactNode, useEffect, useRef, useState } from "react";

import { sessionOffer } from "../actions";
import { reply } from "../answer_keys";
import { progressOf, useAttempt } from "../attempts";
import { canBeDismissed } from "../board";
import { elsewhere } from "../closing";
import { command, commandName, copy, prompt } from "../commands";
import { drafts, useDraft } from "../drafts";
import { STOP_ASK_MS } from "../limits";
import type { Card } from "../wire";
import { ActButton } from "./act_button";
import { ProgressLine } from "./progress_line";
import { TextBox } from "./text_box";

interface Props {
  card: Card;
  onDismiss: (card: Card) => void;
  /** Everything is shown; on a card the rest is behind "More". */
  full?: boolean;
  /** Stands before the buttons. */
  children?: ReactNode;
}

/** What can be done with a session: the next prompt, interrupt, stop, and the small things. */
export function SessionActs({ card, onDismiss, full = false, children }: Props) {
  const offer = sessionOffer(card);
  const [unfolded, setMore] = useState(false);
  const more = full || unfolded;
  const [replying, setReplying] = useState(false);
  const draft = useDraft(card.sessionId);
  const waits = card.agentState.group === "needs_you" && card.requests.length === 0;
  const hasBox = offer.prompt && (full || waits || replying || (draft.prompt ?? "") !== "");
  const rest = offer.stop || offer.focus || offer.resume !== undefined || offer.yolo !== undefined;
  return (
    <>
      {draft.left.length > 0 && <Leftovers card={card} canPrompt={offer.prompt} />}
      {hasBox && <PromptBox card={card} focus={replying} />}
      <CommandTroubles card={card} />
      <footer className="card-foot">
        {children}
        <div className="card-acts" role="group" aria-label="Session">
          {offer.prompt && !hasBox && (
            <ActButton look="quiet" icon={MessageSquare} reply onPress={() => setReplying(true)}>
              Reply
            </ActButton>
          )}
          {offer.interrupt && (
            <CommandButton card={card} verb="interrupt" icon={Pause}>
              Interrupt
            </CommandButton>
          )}
          {more && rest && (
            <>
              {offer.focus && (
                <CommandButton card={card} verb="focus" icon={AppWindow}>
                  Focus
                </CommandButton>
              )}
              {offer.resume !== undefined && (
                <ActButton look="quiet" icon={Copy} onPress={() => void copy(offer.resume!)}>
                  Copy resume command
                </ActButton>
              )}
              {offer.stop && <StopButton card={card} />}
              {offer.yolo !== undefined && <YoloSwitch card={card} on={offer.yolo} />}
            </>
          )}
          {rest && !full && (
            <ActButton look="quiet" icon={Ellipsis} expanded={more} onPress={() => setMore(!more)}>
              {more ? "Less" : "More"}
            </ActButton>
          )}
          {canBeDismissed(card) && (
            <ActButton look="quiet" icon={X} onPress={() => onDismiss(card)}>
              Dismiss
            </ActButton>
          )}
        </div>
      </footer>
    </>
  );
}

function PromptBox({ card, focus }: { card: Card; focus: boolean }) {
  const text = useDraft(card.sessionId).prompt ?? "";
  const attempt = useAttempt(commandName(card, "input"));
  const locked = attempt?.state === "sending";
  const send = () => void prompt(card, text);
  return (
    <div className="prompt-box">
      <TextBox
        label="Next prompt"
        placeholder="Next prompt"
        value={text}
        locked={locked}
        reply
        focus={focus}
        onChange={(typed) => drafts.prompt(card.sessionId, typed)}
        onSubmit={send}
      />
      <ActButton icon={Send} locked={locked || text.trim() === ""} onPress={send}>
        Send
      </ActButton>
    </div>
  );
}

interface CommandButtonProps {
  card: Card;
  verb: "interrupt" | "focus";
  icon: typeof Pause;
  children: ReactNode;
}

function CommandButton({ card, verb, icon, children }: CommandButtonProps) {
  const locked = useAttempt(commandName(card, verb))?.state === "sending";
  return (
    <ActButton look="quiet" icon={icon} locked={locked} onPress={() => void command(card, verb)}>
      {children}
    </ActButton>
  );
}

/** Asks once, in its own place. */
function StopButton({ card }: { card: Card }) {
  const [asked, setAsked] = useState(false);
  const locked = useAttempt(commandName(card, "stop"))?.state === "sending";
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
    // The button that was pressed is gone: its place has the focus, and never on "Yes".
    const buttons = place.current?.querySelectorAll("button");
    if (document.activeElement === document.body) buttons?.[buttons.length - 1]?.focus();
  }, [asked]);
  if (!asked) {
    return (
      <span ref={place}>
        <ActButton look="quiet" icon={Octagon} locked={locked} onPress={() => setAsked(true)}>
          Stop
        </ActButton>
      </span>
    );
  }
  return (
    <span ref={place} className="stop-ask" role="group" aria-label="Stop it?">
      <span role="status">Stop it?</span>
      <ActButton
        look="plain"
        locked={locked}
        onPress={() => {
          setAsked(false);
          void command(card, "stop");
        }}
      >
        Yes, stop
      </ActButton>
      <ActButton look="quiet" onPress={() => setAsked(false)}>
        No
      </ActButton>
    </span>
  );
}

/** Shows what is in force; a press asks for the other. */
function YoloSwitch({ card, on }: { card: Card; on: boolean }) {
  const locked = useAttempt(commandName(card, "yolo"))?.state === "sending";
  return (
    <button
      type="button"
      className="act yolo"
      data-look="quiet"
      role="switch"
      aria-checked={on}
      aria-disabled={locked || undefined}
      title={on ? "It asks nobody" : "It asks before it acts"}
      onClick={() => {
        if (!locked) void command(card, "yolo", { on: !on });
      }}
    >
      <span className="switch" aria-hidden="true" />
      YOLO {on ? "on" : "off"}
    </button>
  );
}

/** What was asked for and did not happen. */
function CommandTroubles({ card }: { card: Card }) {
  const all = [
    ["Prompt", useAttempt(commandName(card, "input"))],
    ["Interrupt", useAttempt(commandName(card, "interrupt"))],
    ["Stop", useAttempt(commandName(card, "stop"))],
    ["Focus", useAttempt(commandName(card, "focus"))],
    ["YOLO", useAttempt(commandName(card, "yolo"))],
  ] as const;
  const shown = all.filter(([, attempt]) => attempt && attempt.state !== "taken");
  return shown.map(([name, attempt]) => {
    const progress = progressOf(undefined, attempt);
    if (!("why" in progress)) return <ProgressLine key={name} progress={progress} />;
    return <ProgressLine key={name} progress={{ ...progress, why: `${name}: ${progress.why}` }} />;
  });
}

/** Text that was typed for a request which somebody else answered first. */
function Leftovers({ card, canPrompt }: { card: Card; canPrompt: boolean }) {
  const draft = useDraft(card.sessionId);
  const without = (index: number) => ({ ...draft, left: draft.left.filter((_, each) => each !== index) });
  return (
    <ul className="leftovers" aria-label="Not sent">
      {draft.left.map(({ text, by }, index) => (
        <li key={index}>
          <p className="progress" data-state="answered">
            {elsewhere(by)}. Your text was not sent:
          </p>
          <pre className="code">{text}</pre>
          <div className="acts">
            {canPrompt && (
              <ActButton
                onPress={() => {
                  const whole = [draft.prompt, text].filter(Boolean).join("\n");
                  drafts.set(card.sessionId, { ...without(index), prompt: whole });
                  requestAnimationFrame(() => reply(card));
                }}
              >
                Use as next prompt
              </ActButton>
            )}
            <ActButton look="quiet" onPress={() => void copy(text)}>
              Copy
            </ActButton>
            <ActButton look="quiet" onPress={() => drafts.set(card.sessionId, without(index))}>
              Discard
            </ActButton>
          </div>
        </li>
      ))}
    </ul>
  );
}
