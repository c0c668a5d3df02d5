import { AppWindow, ArchiveRestore, CircleStop, Copy, Ellipsis, MessageSquare, Send, X } from "lucide-react";
import { type ReactNode, useState } from "react";

import { sessionOffer } from "../actions";
import { reply } from "../answer_keys";
import { useAttempt } from "../attempts";
import { canBeDismissed, dismissName } from "../board";
import { elsewhere } from "../closing";
import { commandName, copy, prompt, unarchive } from "../commands";
import { drafts, useDraft } from "../drafts";
import type { Card } from "../wire";
import { ActButton } from "./act_button";
import { CommandButton, CommandTroubles, DrivingActs, StopButton } from "./command_acts";
import { PresetChoice, YoloSwitch } from "./policy_acts";
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
  const rest = offer.stop || offer.focus || offer.resume !== undefined || offer.yolo || offer.preset;
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
          <DrivingActs card={card} />
          {offer.interrupt && (
            <CommandButton card={card} verb="interrupt" icon={CircleStop}>
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
              {offer.yolo && <YoloSwitch card={card} offer={offer.yolo} />}
              {offer.preset && <PresetChoice card={card} offer={offer.preset} />}
            </>
          )}
          {rest && !full && (
            <ActButton look="quiet" icon={Ellipsis} expanded={more} onPress={() => setMore(!more)}>
              {more ? "Less" : "More"}
            </ActButton>
          )}
          {card.archived && (
            <ActButton icon={ArchiveRestore} onPress={() => void unarchive([card.sessionId])}>
              Put back on the board
            </ActButton>
          )}
          {!card.archived && canBeDismissed(card) && (
            <ActButton look="quiet" icon={X} onPress={() => onDismiss(card)}>
              {dismissName(card)}
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

/** Text that was typed for a request which somebody else answered first. */
export function Leftovers({ card, canPrompt }: { card: Card; canPrompt: boolean }) {
  const draft = useDraft(card.sessionId);
  const without = (index: number) => ({ ...draft, left: draft.left.filter((_, each) => each !== index) });
  return (
    <ul className="leftovers" aria-label="Not sent">
      {draft.left.map(({ text, by }, index) => (
        <li key={index}>
          <p className="progress" data-state="answered">
            {elsewhere(card, by)}. Your text was not sent:
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
