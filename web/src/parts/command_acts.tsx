import { CirclePause, CirclePlay, type LucideIcon, Octagon, RotateCw } from "lucide-react";
import type { ReactNode } from "react";

import { sessionOffer } from "../actions";
import { progressOf, useAttempt } from "../attempts";
import { type Command, command, commandName } from "../commands";
import type { Card } from "../wire";
import { ActButton } from "./act_button";
import { AskFirst } from "./ask_first";
import { ProgressLine } from "./progress_line";

/** What only a session that we drive can be asked for; what it waits for stands out. */
export function DrivingActs({ card }: { card: Card }) {
  const { retry, goOn, pause } = sessionOffer(card);
  return (
    <>
      {retry !== undefined && (
        <CommandButton card={card} verb="retry" icon={RotateCw} look="plain">
          {retry}
        </CommandButton>
      )}
      {goOn && (
        <CommandButton card={card} verb="resume" icon={CirclePlay} look="plain">
          Resume
        </CommandButton>
      )}
      {pause && (
        <CommandButton card={card} verb="pause" icon={CirclePause}>
          Pause
        </CommandButton>
      )}
    </>
  );
}

interface CommandButtonProps {
  card: Card;
  verb: Command;
  look?: "strong" | "plain" | "quiet";
  icon: LucideIcon;
  children: ReactNode;
}

/** A press that asks for something at once. */
export function CommandButton({ card, verb, icon, look = "quiet", children }: CommandButtonProps) {
  const locked = useAttempt(commandName(card, verb))?.state === "sending";
  return (
    <ActButton look={look} icon={icon} locked={locked} onPress={() => void command(card, verb)}>
      {children}
    </ActButton>
  );
}

export function StopButton({ card }: { card: Card }) {
  const locked = useAttempt(commandName(card, "stop"))?.state === "sending";
  return (
    <AskFirst question="Stop it?" yes="Yes, stop" locked={locked} onYes={() => void command(card, "stop")}>
      {(ask) => (
        <ActButton look="quiet" icon={Octagon} locked={locked} onPress={ask}>
          Stop
        </ActButton>
      )}
    </AskFirst>
  );
}

/** What was asked for and did not happen. */
export function CommandTroubles({ card }: { card: Card }) {
  const all = [
    ["Prompt", useAttempt(commandName(card, "input"))],
    ["Interrupt", useAttempt(commandName(card, "interrupt"))],
    ["Stop", useAttempt(commandName(card, "stop"))],
    ["Focus", useAttempt(commandName(card, "focus"))],
    ["YOLO", useAttempt(commandName(card, "yolo"))],
    ["Policy", useAttempt(commandName(card, "policy"))],
    ["Pause", useAttempt(commandName(card, "pause"))],
    ["Resume", useAttempt(commandName(card, "resume"))],
    ["Retry", useAttempt(commandName(card, "retry"))],
  ] as const;
  const shown = all.filter(([, attempt]) => attempt && attempt.state !== "taken");
  return shown.map(([name, attempt]) => {
    const progress = progressOf(undefined, attempt);
    if (!("why" in progress)) return <ProgressLine key={name} progress={progress} />;
    return <ProgressLine key={name} progress={{ ...progress, why: `${name}: ${progress.why}` }} />;
  });
}
