/**
 * What was said and done in a session that the daemon drives, step by step. Pure.
 *
 * Its past comes with the session's detail, what happens now with the stream. A look at the past may
 * be older than what the stream said since: of the same run the later word stands.
 */

import {
  batchOf,
  type BatchRun,
  type Change,
  fields,
  type HookTold,
  type Message,
  type Piece,
  type RunStatus,
  thoughtsOf,
  type ToolTold,
} from "./driven";
import { STEPS_MAX, THOUGHTS_MAX } from "./limits";
import { type LiveAnswer, type LiveCall, withPiece } from "./live_answer";

/** `pending`: not run yet; `waiting`: for a person; `refused`: by one, or by a rule; `lost`: nobody knows. */
export type ToolStatus = RunStatus | "pending" | "waiting" | "refused" | "lost";

export interface ToolStep {
  readonly kind: "tool";
  readonly id: string;
  readonly at: number;
  readonly name: string;
  readonly input: unknown;
  readonly status: ToolStatus;
  readonly run?: string;
  readonly attempt: number;
  readonly startedAt?: number;
  readonly endedAt?: number;
  readonly output?: string;
  /** It has a result, and the result is an error. */
  readonly isError?: boolean;
  readonly error?: string;
}

export interface HookStep {
  readonly kind: "hook";
  readonly id: string;
  readonly at: number;
  readonly name: string;
  readonly status: RunStatus;
  readonly attempt: number;
  readonly startedAt: number;
  readonly endedAt?: number;
  readonly error?: string;
}

export type Step =
  | { readonly kind: "said"; readonly id: string; readonly at: number; readonly text: string }
  | {
      readonly kind: "answer";
      readonly id: string;
      readonly at: number;
      readonly text: string;
      readonly thinking?: string;
      /** As it came in pieces; the past will have it whole. */
      readonly pieced?: true;
    }
  | ToolStep
  | HookStep
  | {
      readonly kind: "turn";
      readonly id: string;
      readonly at: number;
      readonly reason: string;
      readonly to: string;
    }
  | {
      readonly kind: "trouble";
      readonly id: string;
      readonly at: number;
      readonly code: string;
      readonly message: string;
    };

export interface Conversation {
  readonly steps: readonly Step[];
  /** Messages before the first that is here. */
  readonly earlier: number;
  readonly live?: LiveAnswer;
  /** What was thought in turns whose thoughts are not kept elsewhere. */
  readonly thoughts: ReadonlyMap<string, string>;
}

export const NOTHING_SAID: Conversation = { steps: [], earlier: 0, thoughts: new Map() };

/** What a detail says of a driven session. */
export interface Past {
  readonly state: unknown;
  readonly messages: readonly unknown[];
  readonly messagesLen: number;
  readonly notes?: readonly unknown[];
}

/** The past anew, with what the stream knows better. */
export function withPast(conversation: Conversation, past: Past): Conversation {
  const { live } = conversation;
  const told = stepsOf(past);
  const known = new Map(conversation.steps.map((step) => [step.id, step]));
  const newest = told.at(-1)?.at ?? 0;
  const ids = new Set(told.map(({ id }) => id));
  // What the stream told while this was on its way.
  const isSince = (step: Step) => !ids.has(step.id) && isOfStream(step) && step.at >= newest;
  const later = told.map((step) => latest(step, known.get(step.id)));
  return {
    steps: inTime([...later, ...conversation.steps.filter(isSince)]).slice(-STEPS_MAX),
    earlier: Math.max(0, past.messagesLen - past.messages.length),
    thoughts: withThoughts(conversation, ids),
    ...(live === undefined || ids.has(live.turn) ? {} : { live }),
  };
}

/** What was thought on the way to answers that are whole now. */
function withThoughts(
  { steps, live, thoughts }: Conversation,
  whole: ReadonlySet<string>,
): Conversation["thoughts"] {
  const heard = steps.flatMap((step) =>
    step.kind === "answer" && step.pieced && step.thinking !== undefined
      ? [[step.id, step.thinking] as const]
      : [],
  );
  if (live && live.thinking !== "") heard.push([live.turn, live.thinking]);
  const fresh = heard.filter(([turn]) => whole.has(turn));
  return fresh.length === 0 ? thoughts : new Map([...thoughts, ...fresh].slice(-THOUGHTS_MAX));
}

const isOfStream = (step: Step) => (step.kind === "answer" ? step.pieced === true : step.kind !== "said");

/** Of one run the later word; what only the past knows is kept. */
function latest(told: Step, known: Step | undefined): Step {
  if (!known || (told.kind !== "tool" && told.kind !== "hook") || known.kind !== told.kind) return told;
  const isAhead =
    known.attempt > told.attempt ||
    (known.attempt === told.attempt && RANK[known.status] > RANK[told.status]);
  if (!isAhead) return told.kind === "tool" && known.kind === "tool" ? withKnown(told, known) : told;
  const { name, status, attempt, startedAt, endedAt, error } = known;
  const run = known.kind === "tool" && known.run !== undefined ? { run: known.run } : {};
  return { ...told, ...run, name, status, attempt, ...given({ startedAt, endedAt, error }) } as Step;
}

/** A look at the past may be older than the stream's word of what came out. */
const withKnown = (told: ToolStep, { input, output }: ToolStep): ToolStep => ({
  ...told,
  input: told.input ?? input,
  ...(told.output === undefined && output !== undefined ? { output } : {}),
});

const RANK: Readonly<Record<ToolStatus, number>> = {
  pending: 0,
  waiting: 0,
  queued: 1,
  running: 2,
  succeeded: 3,
  failed: 3,
  canceled: 3,
  refused: 3,
  lost: 3,
};

/** A change that the stream told. */
export function withChange(conversation: Conversation, change: Change): Conversation {
  const steps = noted([...conversation.steps], withCallOf(conversation.live, change), true);
  if (steps === undefined) return conversation;
  const { live } = conversation;
  // Words that follow a tool are another paragraph.
  const parted = live && change.type === "tool_lifecycle" ? { live: { ...live, parted: true } } : {};
  return { ...conversation, steps: steps.slice(-STEPS_MAX), ...parted };
}

/** A piece of an answer. One that is complete stays as it came until the past has it. */
export function withStreamed(conversation: Conversation, piece: Piece): Conversation {
  if (conversation.steps.some(({ id, kind }) => kind === "answer" && id === piece.streamId))
    return conversation;
  const heard = piece.type === "tool_call_completed" ? withResult(conversation, piece.payload) : conversation;
  const live = withPiece(heard.live, piece);
  if (live.ended?.how !== "completed") return { ...heard, live };
  const steps = [...heard.steps, ...pieced(live, piece.timestampMs, heard.steps)];
  return { ...withoutLive(heard), steps: inTime(steps).slice(-STEPS_MAX) };
}

function pieced({ turn, text, thinking, calls }: LiveAnswer, at: number, known: readonly Step[]): Step[] {
  const thoughts = thinking === "" ? {} : { thinking };
  const isNew = ({ callId }: LiveCall) => !known.some(({ id }) => id === callId);
  return [
    { kind: "answer", id: turn, at, text, pieced: true, ...thoughts },
    ...calls.filter(isNew).map(({ callId, name, text: input }): Step => ({
      kind: "tool",
      id: callId,
      at,
      name,
      input: argumentsOf(input),
      status: "waiting",
      attempt: 0,
    })),
  ];
}

/** Arguments that came in pieces, as far as they can be read. */
function argumentsOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** A run of a call that is still being told of is shown with what it was given. */
function withCallOf(live: LiveAnswer | undefined, change: Change): Change {
  if (change.type !== "tool_lifecycle" || change.arguments !== undefined) return change;
  const call = live?.calls.find(({ callId }) => callId === change.callId);
  return call ? { ...change, arguments: argumentsOf(call.text) } : change;
}

/** An agent that runs its own tools tells what came out of one. */
function withResult(
  conversation: Conversation,
  { callId, arguments: input, output }: Piece["payload"],
): Conversation {
  const steps = [...conversation.steps];
  const isKnown = change(steps, String(callId), (step) => ({
    ...step,
    input: input ?? step.input,
    ...(typeof output === "string" ? { output } : {}),
  }));
  return isKnown ? { ...conversation, steps } : conversation;
}

/** The stream broke off: what was half heard will come whole. */
export function withoutLive({ live: _, ...rest }: Conversation): Conversation {
  return rest;
}

function stepsOf({ state, messages, notes, messagesLen }: Past): Step[] {
  const steps: Step[] = [];
  let at = 0;
  for (const [index, value] of messages.entries()) {
    const message = value as Message;
    // Messages follow each other, whatever the clock did.
    at = Math.max(at, message.at ?? 0);
    const nth = messagesLen - messages.length + index;
    if (message.from === "operator") addOperator(steps, message, at, nth);
    else if (message.from === "agent") addAnswer(steps, message, at);
  }
  const all = (notes ?? []).reduce<Step[]>(
    (known, note) => noted(known, note as Change, false) ?? known,
    steps,
  );
  for (const run of batchOf(state)) settle(all, run);
  return inTime(all);
}

function addOperator(
  steps: Step[],
  { outputs = [], text }: Extract<Message, { from: "operator" }>,
  at: number,
  nth: number,
): void {
  for (const { callId, content, isError } of outputs) {
    change(steps, callId, (step) => ({ ...step, ...outcomeOf(step, content, isError) }));
  }
  if (text !== undefined) steps.push({ kind: "said", id: `said-${nth}`, at, text });
}

function addAnswer(steps: Step[], message: Extract<Message, { from: "agent" }>, at: number): void {
  const { turn, text = "", calls = [] } = message;
  const thinking = thoughtsOf(message.message);
  // Also where it says nothing: its turn is known to be over.
  steps.push({ kind: "answer", id: turn, at, text, ...given({ thinking }) });
  for (const { callId, name, arguments: input } of calls) {
    steps.push({ kind: "tool", id: callId, at, name, input, status: "pending", attempt: 0 });
  }
}

/** What an output says of a call that never ran. */
function outcomeOf(step: ToolStep, content: string, isError: boolean): Partial<ToolStep> {
  if (step.status === "succeeded" || !isError) return { status: "succeeded", output: content, isError };
  const [, word] = /^(rejected|failed|canceled|interrupted)\b/.exec(content) ?? [];
  const status = word === undefined ? "succeeded" : OUTPUTS[word]!;
  return { status, output: content, isError };
}

const OUTPUTS: Readonly<Record<string, ToolStatus>> = {
  rejected: "refused",
  failed: "failed",
  canceled: "canceled",
  interrupted: "lost",
};

/** Takes a change in; none where it is not worth a step. */
function noted(steps: Step[], told: Change, live: boolean): Step[] | undefined {
  switch (told.type) {
    case "tool_lifecycle":
      return withTool(steps, told);
    case "hook_lifecycle":
      return withHook(steps, told);
    case "state_changed":
      if (!TOLD.has(told.reason) || steps.some(({ id }) => id === told.eventId)) return undefined;
      return [
        ...steps,
        { kind: "turn", id: told.eventId, at: told.timestampMs, reason: told.reason, to: told.to },
      ];
    case "session_error":
      // Refusals are told to whoever asked.
      if (steps.some(({ id }) => id === told.eventId) || (live && told.code === "state_transition_invalid"))
        return undefined;
      return [
        ...steps,
        { kind: "trouble", id: told.eventId, at: told.timestampMs, code: told.code, message: told.message },
      ];
    default:
      return undefined;
  }
}

/** Turns of the state that are no part of the usual round; the daemon notes the same ones. */
const TOLD: ReadonlySet<string> = new Set([
  "stop_requested",
  "harness_exited",
  "retry_due",
  "retry_requested",
  "paused",
  "resumed",
  "retries_exhausted",
  "timed_out",
  "interrupted",
]);

function withTool(steps: Step[], told: ToolTold): Step[] {
  const { runId: run, status, attempt, startedAtMs: startedAt, finishedAtMs: endedAt, error, output } = told;
  const { isError } = told;
  const ran = { run, status, attempt, startedAt, ...given({ endedAt, error, output, isError }) };
  const next = (step: ToolStep): ToolStep => {
    if (attempt < step.attempt || (attempt === step.attempt && RANK[status] < RANK[step.status])) return step;
    // A new attempt has no end and no output yet.
    const { endedAt: _, error: __, isError: before, ...rest } = step;
    return { ...rest, ...(status === "succeeded" ? given({ isError: before }) : {}), ...ran };
  };
  if (change(steps, told.callId, next)) return steps;
  const { callId: id, toolName: name, arguments: input } = told;
  return [...steps, { kind: "tool", id, at: startedAt, name, input, ...ran }];
}

function withHook(steps: Step[], told: HookTold): Step[] {
  const { runId: id, hookName: name, status, attempt, startedAtMs: startedAt } = told;
  const { finishedAtMs: endedAt, error } = told;
  const step: HookStep = {
    kind: "hook",
    id,
    at: startedAt,
    name,
    status,
    attempt,
    startedAt,
    ...given({ endedAt, error }),
  };
  const at = steps.findLastIndex((each) => each.kind === "hook" && each.id === id);
  if (at < 0) return [...steps, step];
  const known = steps[at] as HookStep;
  if (attempt > known.attempt || RANK[status] >= RANK[known.status]) steps[at] = { ...step, at: known.at };
  return steps;
}

/** What the machine knows of a call whose output the model was not given yet. */
function settle(steps: Step[], { call, fate }: BatchRun): void {
  const [name, value] =
    typeof fate === "string" ? [fate, undefined] : (Object.entries(fields(fate))[0] ?? ["", undefined]);
  const text = typeof value === "string" ? value : "";
  change(steps, call.callId, (step) => {
    const input = step.input ?? call.arguments;
    switch (name) {
      case "undecided":
      case "unanswered":
        return { ...step, input, status: step.status === "pending" ? "waiting" : step.status };
      case "rejected":
        return { ...step, input, status: "refused", output: text };
      case "answered":
        return { ...step, input, status: "succeeded", output: text };
      case "lost":
        return { ...step, input, status: "lost" };
      case "succeeded": {
        const { output, is_error: isError } = fields(value);
        return {
          ...step,
          input,
          status: "succeeded",
          output: String(output ?? ""),
          isError: isError === true,
        };
      }
      default:
        return { ...step, input };
    }
  });
}

/** Changes the newest step of that call, in place; false if there is none. */
function change(steps: Step[], callId: string, to: (step: ToolStep) => ToolStep): boolean {
  const at = steps.findLastIndex((step) => step.kind === "tool" && step.id === callId);
  const step = steps[at];
  if (step?.kind !== "tool") return false;
  steps[at] = to(step);
  return true;
}

/** By time; what is of one moment stays as it was told. */
const inTime = (steps: readonly Step[]): Step[] => [...steps].sort((a, b) => a.at - b.at);

/** The fields that have a value. */
function given<T extends object>(values: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>;
  };
}
