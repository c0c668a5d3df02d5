/**
 * What is told of a session that the daemon drives: changes (`agent:state_event`), pieces of an
 * answer (`agent:stream_event`), and what its detail says of its past. Spelled by hand: the stream's
 * events and the machine's state have no shape in the server's document.
 */

export type RunStatus = "queued" | "running" | "succeeded" | "failed" | "canceled";

interface Told {
  readonly eventId: string;
  readonly timestampMs: number;
  readonly sessionId: string;
}

interface RunTold extends Told {
  readonly runId: string;
  readonly status: RunStatus;
  readonly attempt: number;
  readonly startedAtMs: number;
  readonly finishedAtMs?: number;
  readonly error?: string;
}

export interface ToolTold extends RunTold {
  readonly type: "tool_lifecycle";
  readonly callId: string;
  readonly toolName: string;
  /** It has a result, and the result is an error. */
  readonly isError?: boolean;
  /** Of a call that is in no message. */
  readonly arguments?: unknown;
  /** What came out of one, in the past. */
  readonly output?: string;
}

export interface HookTold extends RunTold {
  readonly type: "hook_lifecycle";
  readonly hookName: string;
  readonly toolRunIds: readonly string[];
}

export interface StateTold extends Told {
  readonly type: "state_changed";
  readonly from: string;
  readonly to: string;
  readonly reason: string;
}

export interface ErrorTold extends Told, AgentError {
  readonly type: "session_error";
}

export interface AgentError {
  readonly code: string;
  readonly message: string;
  readonly retryable: boolean;
  readonly source: string;
  readonly resetsAt?: number;
}

export type Change = ToolTold | HookTold | StateTold | ErrorTold;

/** A piece of an answer. Types that nobody knows here move the count and nothing else. */
export interface Piece {
  readonly sessionId: string;
  /** The turn. */
  readonly streamId: string;
  readonly seq: number;
  readonly timestampMs: number;
  readonly type: string;
  readonly payload: Readonly<Record<string, unknown>>;
}

export type Message =
  | {
      readonly from: "operator";
      readonly at: number;
      readonly outputs?: readonly { callId: string; content: string; isError: boolean }[];
      readonly text?: string;
    }
  | {
      readonly from: "agent";
      readonly at: number;
      readonly turn: string;
      readonly text?: string;
      readonly calls?: readonly { callId: string; name: string; arguments: unknown }[];
      readonly message?: unknown;
    };

/** What became of a call, as the machine's state has it. */
export interface BatchRun {
  readonly call: { readonly callId: string; readonly name: string; readonly arguments: unknown };
  readonly fate: unknown;
}

/** The batch of a machine's state, wherever it lies in it. */
export function batchOf(state: unknown): readonly BatchRun[] {
  for (const value of [fields(state), fields(fields(state)["then"]), fields(fields(state)["wayOn"])]) {
    for (const name of ["batch", "owed"]) {
      const runs = value[name];
      if (Array.isArray(runs)) return runs.filter(isBatchRun);
    }
  }
  return [];
}

function isBatchRun(value: unknown): value is BatchRun {
  const call = fields(fields(value)["call"]);
  return typeof call["callId"] === "string" && typeof call["name"] === "string";
}

/** When what failed comes again by itself, after the state began; none where only a person repeats it. */
export function retryAfterMs(state: unknown): number | undefined {
  const timer = fields(fields(fields(state)["wayOn"])["timer"]);
  const after = fields(timer["running"])["afterMs"] ?? fields(timer["running"])["after_ms"];
  return typeof after === "number" ? after : undefined;
}

/** What a model thought before it answered, where its provider shows it. */
export function thoughtsOf(message: unknown): string | undefined {
  const blocks = fields(message)["blocks"];
  if (!Array.isArray(blocks)) return undefined;
  const texts = blocks.map(fields).filter(({ type }) => type === "thinking");
  const said = texts.map(({ text }) => (typeof text === "string" ? text : "")).join("\n");
  return said === "" ? undefined : said;
}

export type Fields = Readonly<Record<string, unknown>>;

export function fields(value: unknown): Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}
