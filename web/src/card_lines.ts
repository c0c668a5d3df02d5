/** What can be done with a card, as lines of the palette. */

import {
  Check,
  CirclePause,
  CirclePlay,
  CircleStop,
  type LucideIcon,
  MessageSquare,
  Octagon,
  RotateCw,
  ShieldCheck,
  X,
  Zap,
} from "lucide-react";

import { offerOf, sessionOffer } from "./actions";
import { act, frontOf, reply } from "./answer_keys";
import { canBeDismissed, dismissName } from "./board";
import { titleOfCard } from "./card_text";
import { choosePreset, command, dismiss } from "./commands";
import type { PaletteLine } from "./parts/palette";
import { PRESET_NAMES, PRESET_WORDS, PRESETS } from "./policy";
import { mayBeReleased, readings } from "./readings";
import { visibleText } from "./visible";
import type { Card, Preset } from "./wire";

export function linesOf(card: Card): PaletteLine[] {
  const offer = sessionOffer(card);
  const title = titleOfCard(card);
  const line = (icon: LucideIcon, text: string, act: () => void, note?: string): PaletteLine => ({
    key: `act ${note ?? text}`,
    icon,
    text: `${text}: ${title}`,
    ...(note === undefined ? {} : { note }),
    act,
  });
  return [
    ...answersOf(card).map(([icon, text, key]) => line(icon, text, () => act(card, key), key)),
    // The dialog gives the focus back as it closes; the box gets it after that.
    ...(offer.prompt
      ? [line(MessageSquare, "Reply", () => requestAnimationFrame(() => reply(card)), "r")]
      : []),
    ...(canBeDismissed(card) ? [line(X, dismissName(card), () => void dismiss(card), "e")] : []),
    ...(offer.retry === undefined ? [] : [line(RotateCw, offer.retry, () => void command(card, "retry"))]),
    ...(offer.goOn ? [line(CirclePlay, "Resume", () => void command(card, "resume"))] : []),
    ...(offer.pause ? [line(CirclePause, "Pause", () => void command(card, "pause"))] : []),
    ...(offer.interrupt ? [line(CircleStop, "Interrupt", () => void command(card, "interrupt"))] : []),
    ...(offer.stop
      ? [
          asking(
            line(Octagon, "Stop", () => void command(card, "stop")),
            `Yes, stop: ${title}`,
          ),
        ]
      : []),
    ...yoloLines(card),
    ...presetLines(card),
  ];
}

function answersOf(card: Card): (readonly [LucideIcon, string, string])[] {
  const request = frontOf(card);
  const offer = request && offerOf(card, request);
  const isRead = request !== undefined && readings.of(request) === "ready";
  switch (offer?.kind) {
    case "permission":
      return [...(isRead ? [[Check, "Allow", "y"] as const] : []), [X, "Deny", "n"]];
    case "plan":
      return [...(isRead ? [[Check, "Approve", "y"] as const] : []), [X, "Reject", "n"]];
    case "questions": {
      if (offer.questions.length > 1) return [];
      const options = offer.questions[0]!.options.slice(0, 9);
      return options.map(
        ({ label }, index) => [MessageSquare, visibleText(label, "prose"), String(index + 1)] as const,
      );
    }
    case "none":
    case undefined:
      return [];
  }
}

function yoloLines(card: Card): PaletteLine[] {
  const offer = sessionOffer(card).yolo;
  if (!offer || offer.locked !== undefined) return [];
  const title = titleOfCard(card);
  const turn = { key: "yolo", icon: Zap, act: () => void command(card, "yolo", { on: !offer.on }) };
  if (offer.on) return [{ ...turn, text: `YOLO off: ${title}` }];
  if (!mayBeReleased(card)) return [];
  return [asking({ ...turn, text: `YOLO on: ${title}` }, `Yes, answer everything yes: ${title}`)];
}

function presetLines(card: Card): PaletteLine[] {
  const offer = sessionOffer(card).preset;
  if (!offer) return [];
  const title = titleOfCard(card);
  const line = (preset: Preset | undefined): PaletteLine => ({
    key: `policy ${preset}`,
    icon: ShieldCheck,
    text: `Policy ${preset === undefined ? "as the project has it" : PRESET_NAMES[preset]}: ${title}`,
    note: preset === offer.chosen ? "in force" : preset === undefined ? "" : PRESET_WORDS[preset],
    act: () => void choosePreset(card, preset),
  });
  // YOLO has a line of its own.
  const all = [undefined, ...PRESETS.filter((preset) => preset !== "yolo")];
  return all.filter((preset) => preset === "manual" || mayBeReleased(card)).map(line);
}

/** The same line, with a question before it; "No" comes first, as a second Enter may be a slip. */
function asking(line: PaletteLine, yes: string): PaletteLine {
  const no = { key: "no", icon: X, text: "No, leave it as it is", act: () => {} };
  return { ...line, then: [no, { key: "yes", icon: Check, text: yes, act: line.act }] };
}
