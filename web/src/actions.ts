/**
 * What can be done with a card, and what a press or a key means. Pure.
 *
 * A button exists exactly where the server said that its way can carry what the button sends.
 */

import type { RequestDraft } from "./drafts";
import { type PresetOffer, presetOffer, type YoloOffer, yoloOffer } from "./policy";
import { commandOf, type Question, shown } from "./request";
import { isPlain } from "./visible";
import type { AllowScope, Answer, Capability, Card, Decision, RequestView } from "./wire";

/** How one request can be answered from here. */
export type Offer =
  | { kind: "none"; why: string }
  | {
      kind: "permission";
      key: string;
      /** How far beyond this once it can be allowed. */
      scopes: readonly AllowScope[];
      /** What "always" would keep, in words. */
      kept: readonly string[];
      canExplain: boolean;
      /** None where nobody can read here what would run. */
      canAllow: boolean;
      command?: string;
    }
  | { kind: "questions"; key: string; questions: readonly Question[] }
  | { kind: "plan"; key: string; modes: readonly string[]; canAllow: boolean };

export function offerOf(card: Card, request: RequestView): Offer {
  const { key, way } = request;
  const capability: Capability = request.kind === "question" ? "canAnswer" : "canApprove";
  const can = card.capabilities?.[capability] === true;
  if (key === undefined || way === undefined || !can) {
    const why = request.whyNot ?? card.capabilities?.why[capability];
    return { kind: "none", why: why ?? "Answer it where it runs." };
  }
  switch (request.kind) {
    case "plan":
      return { kind: "plan", key, modes: request.modes ?? [], canAllow: isReadable(request) };
    case "question":
      return { kind: "questions", key, questions: questionsOf(request) };
    case "permission": {
      const command = request.takesChanges ? editable(request) : undefined;
      return {
        kind: "permission",
        key,
        scopes: request.scopes ?? [],
        kept: request.suggestions ?? [],
        canExplain: request.takesWords,
        canAllow: isReadable(request),
        ...(command === undefined ? {} : { command }),
      };
    }
  }
}

/** Whether the whole of what is asked for is here to be read. */
const isReadable = (request: RequestView) => request.cut !== true && shown(request).kind !== "nothing";

function questionsOf(request: RequestView): readonly Question[] {
  const what = shown(request);
  if (what.kind === "questions") return what.questions;
  return [{ text: request.text ?? "", options: [], several: false }];
}

/** What can be done with the session itself. */
export interface SessionOffer {
  prompt: boolean;
  interrupt: boolean;
  stop: boolean;
  focus: boolean;
  pause: boolean;
  /** Lets a paused session go on, or begins a stopped one again. */
  goOn: boolean;
  /** What a retry would repeat, in words. */
  retry?: string;
  /** The command to be copied. */
  resume?: string;
  yolo?: YoloOffer;
  preset?: PresetOffer;
}

export function sessionOffer(card: Card): SessionOffer {
  const can = card.capabilities;
  const [yolo, preset] = [yoloOffer(card), presetOffer(card)];
  const isResumable = can?.canResume === true;
  const resume = isResumable && !card.driven ? card.resumeCommand : undefined;
  return {
    prompt: can?.canPrompt === true,
    interrupt: can?.canInterrupt === true,
    stop: can?.canStop === true,
    focus: can?.canFocus === true,
    pause: can?.canPause === true,
    goOn: isResumable && card.driven,
    ...(can?.canRetry === true ? { retry: retryWords(card) } : {}),
    ...(resume === undefined ? {} : { resume }),
    ...(yolo === undefined ? {} : { yolo }),
    ...(preset === undefined ? {} : { preset }),
  };
}

function retryWords(card: Card): string {
  const kind = (card.drive?.retry as { kind?: string } | undefined)?.kind ?? "";
  return Object.hasOwn(RETRIES, kind) ? RETRIES[kind]! : "Try again";
}

const RETRIES: Readonly<Record<string, string>> = {
  llm: "Ask the model again",
  tool: "Run what failed again",
  hook: "Run the hook again",
  harness: "Start the agent again",
};

/** What went wrong last in a driven session, in its own words. */
export function lastErrorOf(card: Card): string | undefined {
  const error = card.drive?.lastError as { message?: unknown } | undefined;
  return typeof error?.message === "string" && error.message !== "" ? error.message : undefined;
}

/** A capability that is missing, in the order in which they are wanted, and why. */
export function missing(card: Card): readonly (readonly [name: string, why: string])[] {
  const can = card.capabilities;
  if (!can) return [];
  return NAMES.flatMap(([capability, name]) => {
    const why = can.why[capability];
    return can[capability] || why === undefined ? [] : [[name, why] as const];
  });
}

const NAMES: readonly (readonly [Capability, string])[] = [
  ["canApprove", "Approve"],
  ["canAnswer", "Answer"],
  ["canPrompt", "Prompt"],
  ["canInterrupt", "Interrupt"],
  ["canStop", "Stop"],
  ["canFocus", "Focus"],
  ["canYolo", "YOLO"],
  ["canPause", "Pause"],
  ["canResume", "Resume"],
  ["canRetry", "Retry"],
];

/** The command that the operator may change before it is allowed. */
function editable(request: RequestView): string | undefined {
  const what = shown(request);
  if (what.kind !== "command" || changed(request.input, what.command) === undefined) return undefined;
  // A box for typing shows no marks: what hides in a command would hide there.
  return request.cut === true || !isPlain(what.command, "code") ? undefined : what.command;
}

/** The whole input with another command in it; none if the command is not one text there. */
export function changed(input: unknown, command: string): unknown {
  if (typeof input !== "object" || input === null || Array.isArray(input)) return undefined;
  const fields = input as Readonly<Record<string, unknown>>;
  const name = fields["command"] === undefined ? "cmd" : "command";
  const was = fields[name];
  if (typeof was === "string") return { ...fields, [name]: command };
  // `bash -lc SCRIPT`: only the script is shown.
  if (!Array.isArray(was) || was.length !== 3 || commandOf(fields) !== was[2]) return undefined;
  return { ...fields, [name]: [was[0], was[1], command] };
}

/** Allows what was asked or, where the command was changed, that. */
export function allowEdited(request: RequestView, command: string): Decision {
  const offered = shown(request);
  if (offered.kind === "command" && offered.command === command) return { type: "allow" };
  return { type: "allow", input: changed(request.input, command) };
}

export function denied(message: string | undefined): Decision {
  const said = message?.trim() ?? "";
  return said === "" ? { type: "deny" } : { type: "deny", message: said };
}

export function rejected(feedback: string | undefined): Decision {
  const said = feedback?.trim() ?? "";
  return said === "" ? { type: "reject_plan" } : { type: "reject_plan", feedback: said };
}

export function approved(mode: string | undefined): Decision {
  return mode === undefined || mode === "" ? { type: "approve_plan" } : { type: "approve_plan", mode };
}

/** What was chosen and typed for one question. */
export interface Filled {
  readonly chosen: readonly string[];
  readonly text: string;
  /** Kept in no storage. */
  readonly secret?: true;
}

export const UNFILLED: Filled = { chosen: [], text: "" };

export const nameOf = (question: Question) => question.id ?? question.text;

/** The answers of a form; none while a question has none. */
export function answered(
  questions: readonly Question[],
  filled: readonly (Filled | undefined)[],
): Decision | undefined {
  const answers = questions.map((question, index): Answer => ({
    question: nameOf(question),
    values: valuesOf(question, filled[index] ?? UNFILLED),
  }));
  return answers.every(({ values }) => values.length > 0) ? { type: "answer", answers } : undefined;
}

export function valuesOf(question: Question, { chosen, text }: Filled): string[] {
  const typed = text.trim() === "" ? [] : [text.trim()];
  if (question.several) return [...chosen, ...typed];
  // What was typed is the later thought.
  return typed.length > 0 ? typed : chosen.slice(0, 1);
}

/** An option pressed: chosen or, of several, put back. */
export function toggled(question: Question, filled: Filled, label: string): Filled {
  if (!question.several) return { chosen: [label], text: "" };
  // As the question lists them, not as they were pressed.
  const had = filled.chosen.includes(label);
  const wanted = new Set(had ? filled.chosen.filter((each) => each !== label) : [...filled.chosen, label]);
  const chosen = question.options.map((option) => option.label).filter((each) => wanted.has(each));
  return { ...filled, chosen };
}

/** One question with one choice: its option is the whole answer. */
export const answersAtOnce = (questions: readonly Question[]) =>
  questions.length === 1 && !questions[0]!.several;

/** What a key does with a request. */
export type Keyed =
  { type: "decide"; decision: Decision } | { type: "choose"; question: number; filled: Filled };

/**
 * `y`, `n` and `1` to `9` on the request in front; none if the key says nothing there. Of several
 * questions a number answers the one that is `at` hand, or the first that has no answer.
 */
export function keyed(offer: Offer, draft: RequestDraft, key: string, at?: number): Keyed | undefined {
  const decide = (decision: Decision): Keyed => ({ type: "decide", decision });
  switch (offer.kind) {
    case "none":
      return undefined;
    case "permission":
      if (key === "y") return offer.canAllow ? decide({ type: "allow" }) : undefined;
      return key === "n" ? decide(denied(offer.canExplain ? draft.message : undefined)) : undefined;
    case "plan":
      if (key === "y") return offer.canAllow ? decide(approved(draft.mode)) : undefined;
      return key === "n" ? decide(rejected(draft.message)) : undefined;
    case "questions":
      return /^[1-9]$/.test(key) ? optionKeyed(offer.questions, draft, Number(key) - 1, at) : undefined;
  }
}

function optionKeyed(
  questions: readonly Question[],
  draft: RequestDraft,
  option: number,
  at: number | undefined,
): Keyed | undefined {
  const index = at ?? inFront(questions, draft);
  const question = questions[index];
  const pressed = question?.options[option];
  if (!question || !pressed) return undefined;
  const next = toggled(question, draft.filled?.[index] ?? UNFILLED, pressed.label);
  if (!answersAtOnce(questions)) return { type: "choose", question: index, filled: next };
  const decision = answered(questions, [next]);
  return decision && { type: "decide", decision };
}

/** The first question without an answer or, when all have one, the last. */
export function inFront(questions: readonly Question[], draft: RequestDraft): number {
  const open = questions.findIndex(
    (each, index) => valuesOf(each, draft.filled?.[index] ?? UNFILLED).length === 0,
  );
  return open < 0 ? questions.length - 1 : open;
}

/** The answer that is given, in a few words. */
export function decisionWords(decision: Decision): string {
  switch (decision.type) {
    case "allow":
      return ALLOWED[decision.scope ?? "once"];
    case "deny":
      return "denied";
    case "answer":
      return decision.answers.flatMap(({ values }) => values).join(", ") || "answered";
    case "approve_plan":
      return "plan approved";
    case "reject_plan":
      return "plan rejected";
  }
}

const ALLOWED: Readonly<Record<AllowScope, string>> = {
  once: "allowed",
  session: "allowed for the session",
  always: "always allowed",
};
