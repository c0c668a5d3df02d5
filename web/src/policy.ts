/** What is answered for a session without the operator, in plain words. Pure. */

import { asksNobody, takesApproval } from "./harness";
import type { Card, Origin, PolicyView, Preset } from "./wire";

/** From the strictest on, as they are chosen. */
export const PRESETS: readonly Preset[] = ["manual", "careful", "auto-edit", "yolo"];

export const PRESET_NAMES: Readonly<Record<Preset, string>> = {
  manual: "manual",
  careful: "careful",
  "auto-edit": "auto-edit",
  yolo: "YOLO",
};

export const PRESET_WORDS: Readonly<Record<Preset, string>> = {
  manual: "asks everything",
  careful: "reads its workspace unasked",
  "auto-edit": "reads and writes its workspace unasked",
  yolo: "answers everything yes",
};

const WHOSE: Readonly<Record<Origin, string>> = {
  session: "chosen for this session",
  project: "its project's, in policy.toml",
  global: "for all sessions, in policy.toml",
  repository: "its repository's",
  preset: "a preset's",
};

/** What a card says of the policy. */
export interface PolicyChip {
  text: string;
  /** Whose it is, and what holds beside it. */
  title: string;
  /** It asks nobody. */
  loud: boolean;
}

/** None where all is asked, and none of a session that will ask nothing any more. */
export function policyChip(card: Card): PolicyChip | undefined {
  const policy = policyOf(card);
  if (!policy || card.agentState.state === "session_ended") return undefined;
  const { preset, rules } = policy;
  if (preset === "manual" && rules === 0) return undefined;
  const idle = notInEffect(card);
  const parts = preset === "manual" ? [] : [preset === "yolo" ? "YOLO" : preset];
  if (preset === "yolo" && idle === undefined) parts[0] = `YOLO: ${PRESET_WORDS.yolo}`;
  else if (rules > 0) parts.push(counted(rules));
  return {
    text:
      idle === undefined || preset === "manual" ? parts.join(", ") : `${parts.join(", ")} (not in effect)`,
    title: titleOf(policy, idle),
    loud: preset === "yolo" && idle === undefined,
  };
}

/** A session that we drive has the preset that it was begun with, or switched to. */
function policyOf({ policy, drive }: Card): PolicyView | undefined {
  const preset = PRESETS.find((each) => each === drive?.preset);
  return preset === undefined ? policy : { rules: 0, ...policy, preset, from: "session" };
}

function titleOf({ preset, from, rules }: PolicyView, idle: string | undefined): string {
  const whose = from === undefined ? "" : `, ${WHOSE[from]}`;
  const first = `${capital(PRESET_NAMES[preset])}: ${PRESET_WORDS[preset]}${whose}.`;
  const held =
    rules === 0
      ? ""
      : ` ${counted(rules)} of yours and its repository's ${rules === 1 ? "goes" : "go"} first.`;
  return `${first}${held}${idle === undefined ? "" : ` Not in effect: ${idle}.`}`;
}

/** Why nothing can be answered yes for it, where nothing can. */
function notInEffect(card: Card): string | undefined {
  const { canYolo, why } = card.capabilities;
  return canYolo || card.policy?.yoloForbidden ? undefined : why["canYolo"];
}

const counted = (rules: number) => (rules === 1 ? "1 rule" : `${rules} rules`);
const capital = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);

/** Whether it runs without asking: by our preset or by its client's own mode. */
export const isYolo = (card: Card) => policyOf(card)?.preset === "yolo" || asksNobody(card.mode ?? "");

/** The YOLO switch: whether it is on, and why it cannot be moved. */
export interface YoloOffer {
  on: boolean;
  locked?: string;
}

export function yoloOffer(card: Card): YoloOffer | undefined {
  const can = card.capabilities;
  if (!can.canYolo) return undefined;
  const on = isYolo(card);
  // Its client's own mode is its client's; only Codex's daemon, by which it is interrupted, turns it off.
  const isOwn = on && policyOf(card)?.preset !== "yolo" && !(card.harness === "codex" && can.canInterrupt);
  return isOwn ? { on, locked: `its client is in mode ${card.mode}: change it there` } : { on };
}

/** What may be chosen for a session. */
export interface PresetOffer {
  /** What the session has of its own; none: as the project has it. */
  chosen: Preset | undefined;
  /** Why YOLO is not among them. */
  noYolo?: string;
}

/** None where no answer of ours could reach it, so that nothing would come of a choice. */
export function presetOffer(card: Card): PresetOffer | undefined {
  const { capabilities: can, policy, harness } = card;
  // Its preset was chosen when it began; YOLO is switched.
  if (card.driven) return undefined;
  const isForbidden = policy?.yoloForbidden === true && takesApproval(harness) && !can.canResume;
  if (!can.canYolo && !isForbidden) return undefined;
  const chosen = policy?.from === "session" ? policy.preset : undefined;
  return can.canYolo ? { chosen } : { chosen, noYolo: can.why["canYolo"] ?? "its project forbids it" };
}
