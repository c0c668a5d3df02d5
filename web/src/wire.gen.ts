/** What the server says, as it spells it. Made from the server's own types by
 * `WIRE_UPDATE=1 cargo test -p qd-server --test wire`. */

/** `GET /api/health`: who we are and how we are. */
export type About = Health & {
  pid: number;
  port: number;
  version: string;
};

export type Active = "thinking" | "tool_use" | "permission_under_review" | "waiting_for_permission" | "compacting";

/** The operator's view of one session, as it goes over the wire. */
export interface AgentState {
  /** 0 to 1: how sure we are. */
  confidence: number;
  context?: Record<string, unknown>;
  /** The core's words, where a domain layer has put others in their place. */
  coreLabel?: string;
  /** The last signal of each source. */
  evidence: Evidence[];
  group: Group;
  /** What is shown: the core's words, or a domain layer's. */
  label: string;
  /** The rule that decided, in a sentence. */
  rule: string;
  /** When the deciding fact happened. The card counts its time in state from here. */
  since: Timestamp;
  /** Who told the fact that decided. */
  source: Source;
  state: SubState;
  /** A domain layer's wish for the place within the group. */
  urgency?: number;
}

/** The answer to one question of a request. */
export interface Answer {
  /** The question's id or, where it has none, its text. */
  question: string;
  /** The labels chosen, or the text typed. */
  values: string[];
}

/** How far an answer has come. */
export type AnswerState = "sending" | "delivered" | "failed" | "unclear";

export interface AnswerView {
  at: Timestamp;
  by: By;
  decision: Decision;
  rule?: RuleName;
  state: AnswerState;
  /** Why it did not arrive. */
  why?: string;
}

/** The agent's side has it. */
export interface Answered {
  decisionId: DecisionId;
  /** `delivered`, or `confirmed` where the agent has gone on already. */
  state: string;
}

/** A browser, as others may know it. */
export interface BrowserView {
  id: string;
  name: string;
  scope: Scope;
  seenS: number;
  sinceS: number;
}

/** Whose decision it is. */
export interface By {
  device: string;
  who: string;
}

/** A tool call as the model named it. */
export type CallId = string;

/** The page and the command line offer exactly what is true here. */
export interface Capabilities {
  canAnswer: boolean;
  canApprove: boolean;
  canFocus: boolean;
  canInterrupt: boolean;
  canPrompt: boolean;
  canResume: boolean;
  canStop: boolean;
  canYolo: boolean;
  /** A sentence for each that is false, by its name. */
  why: Record<string, string>;
}

export interface Card {
  agentState: AgentState;
  branch?: string;
  /** What can be done with it from here. */
  capabilities: Capabilities;
  cwd?: string;
  forkedFrom?: SessionId;
  harness: Harness;
  /** A domain layer's; else the sub-state has one of its own. */
  icon?: string;
  lastSignal: Timestamp;
  /** The client's permission mode, in its own words. */
  mode?: string;
  monitorView: MonitorView;
  /** What its agents wait for a person for. */
  requests: RequestView[];
  /** How to go on with it in a terminal. */
  resumeCommand?: string;
  sessionId: SessionId;
  startedAt: Timestamp;
  subagents: SubagentView[];
  title?: string;
  transcript?: string;
  /** Signals nobody understood. */
  unrecognised: number;
  usage: UsageView;
  /** The agent's own id for the session. */
  vendorId: string;
  where?: ProcessView;
}

/** Somebody was first. */
export type Conflict = Problem & {
  first?: FirstAnswer;
};

export type Decision = {
  /** The whole input, where the operator changed it. */
  input?: unknown;
  scope?: Reach;
  type: "allow";
} | {
  /** End the turn as well. */
  interrupt?: boolean;
  message?: string;
  type: "deny";
} | {
  answers: Answer[];
  type: "answer";
} | {
  /** The permission mode that follows, in the client's words. */
  mode?: string;
  type: "approve_plan";
} | {
  feedback?: string;
  type: "reject_plan";
};

/** One answer or command of an operator or a rule, `dec_<uuid>`. */
export type DecisionId = string;

/** The body of `POST /api/requests/{key}/decision`. */
export interface DecisionWanted {
  decision: Decision;
  /** The same again changes nothing. */
  key?: string;
}

/** One thing that was said or done. */
export interface Entry {
  /** The subagent that said it. */
  agent?: string;
  at?: Timestamp;
  /** The same whichever page it stands on; a call and its result share it. */
  id: string;
  model?: string;
  role: Role;
  text?: string;
  tool?: ToolUse;
}

/** The last signal of one source: why the session is believed to be what it is. */
export interface Evidence {
  at: Timestamp;
  event: string;
  source: Source;
}

/** A fact, when it happened and who told it. */
export interface EvidenceLine {
  at: Timestamp;
  source: Source;
  text: string;
}

/** The answer that stands. */
export interface FirstAnswer {
  at: Timestamp;
  by: By;
  decision: Decision;
  rule?: RuleName;
  state: string;
}

/** What the page shows in a state. */
export interface Flags {
  inputEnabled: boolean;
  isActive: boolean;
  showAutoModeWarning: boolean;
  showCancelButton: boolean;
  showResumeButton: boolean;
  showSpinner: boolean;
}

/** The three groups of the board. Fixed for ever: the protocol hangs on them. */
export type Group = "needs_you" | "autonomous" | "delivered";

/** An agent product, as captures and the wire spell it. */
export type Harness = "claude_code" | "codex" | "gemini_cli" | "kilo_code" | "cline" | "opencode" | "acp";

/** How the daemon itself is. */
export interface Health {
  /** Everything that was there at the start has been read. */
  caughtUp: boolean;
  /** Changes shown so far. */
  changes: number;
  /** Entries that could never be written. */
  dropped: number;
  /** Hooks taken, from the socket and from the spool. */
  hooks: number;
  /** Why the journal takes nothing, while it takes nothing. */
  journalError?: string;
  /** Troubles with session files, told in the log. */
  notices: number;
  /** Hooks that were sent back to be spooled. */
  refused: number;
  sessions: number;
  /** Those of them that lay in the spool. */
  spooled: number;
  /** Hooks of agents that are not known here. */
  unknown: number;
}

export interface HistoryEntry {
  costUsd?: number;
  endedAt: Timestamp;
  harness: Harness;
  project?: string;
  /** Ours, or the client's own where nothing else is known of it. */
  sessionId: string;
  /** What was said; the words that were looked for are between U+0002 and U+0003. */
  snippet?: string;
  startedAt: Timestamp;
  title?: string;
  totalTokens?: number;
}

/** `GET /api/history`. */
export interface HistoryPage {
  /** What to ask for next; none after the last page. */
  before?: string;
  sessions: HistoryEntry[];
}

/** A link that signs one browser in. */
export interface Link {
  livesS: number;
  /** To be put behind the address by which the browser reaches us. */
  path: string;
}

/** `POST /api/links`: what the link shall allow; `operate` if it does not say. */
export interface LinkWanted {
  scope?: string;
}

/** The session in the manager's words, and what its page shows then. */
export type ManagerShown = Flags & {
  state: ManagerState;
};

export type ManagerState = "idle" | "creating" | "streaming" | "waiting_approval" | "waiting_input" | "completed" | "paused" | "error" | "stopped";

export type MonitorView = {
  state: "initialized";
} | {
  state: "idle";
} | {
  state: "active";
  subState: Active;
} | {
  state: "exited";
};

export type Outcome = "ok" | "failed" | "denied" | "interrupted";

/** Entries, oldest first, and where to go on. */
export interface Page {
  /** Where what comes after this page will be. */
  after?: string;
  /** Where the page before this one is; none at the beginning. */
  before?: string;
  entries: Entry[];
  /** There is more in the direction that was asked for. */
  more: boolean;
  /** Why there is nothing, where there never will be. */
  reason?: string;
}

/** Why something was not done. */
export interface Problem {
  code: string;
  message: string;
  /** The same request may succeed later. */
  retryable: boolean;
}

/** Where a session runs. */
export interface ProcessView {
  pid: number;
  /** What draws that terminal, where it says so. */
  program?: string;
  /** The pane of tmux it sits in: `work:2.1`, or `%3` where the name is not known. */
  tmux?: string;
  /** The terminal that shows it: `/dev/pts/3`. */
  tty?: string;
}

/** The body of `POST /api/sessions/{id}/input`. */
export interface PromptWanted {
  /** The same again changes nothing. */
  key?: string;
  text: string;
}

/** How far an allowance reaches. */
export type Reach = "once" | "session" | "always";

/** The stream's `session_removed`. */
export interface Removed {
  sessionId: SessionId;
}

/** A request for the whole world, `req_<hex>`: the same after a restart, another one when the same thing is asked again later. */
export type RequestKey = string;

export type RequestKind = "plan" | "question" | "permission";

/** `GET /api/requests`. */
export interface RequestList {
  requests: RequestOf[];
}

/** A request and the session that waits for it. */
export interface RequestOf {
  cwd?: string;
  harness: Harness;
  request: RequestView;
  sessionId: SessionId;
  title?: string;
}

export interface RequestView {
  agent?: string;
  answer?: AnswerView;
  input?: unknown;
  key?: RequestKey;
  kind: RequestKind;
  /** The modes that may follow a plan, in the client's words. */
  modes?: string[];
  /** The agent's own. */
  requestId: string;
  since: Timestamp;
  /** What "always" would keep, in words. */
  suggestions?: string[];
  text?: string;
  tool?: string;
  /** How an answer would reach the agent: `hook`, `codex`, `opencode`. None: not from here. */
  way?: string;
  /** Why it cannot be answered from here. */
  whyNot?: string;
}

export type Role = "user" | "assistant" | "tool" | "system";

/** The rule that answered by itself. */
export type RuleName = string;

/** One tool call. */
export interface Run {
  agent?: string;
  /** What it is about: a command, a path, a query. */
  detail?: string;
  endedAt?: Timestamp;
  id: CallId;
  name: ToolName;
  outcome?: Outcome;
  startedAt: Timestamp;
}

/** What somebody may do. Each includes those before it. */
export type Scope = "ingest" | "observe" | "operate" | "admin";

/** `GET /api/live/sessions/{id}`. */
export interface SessionDetail {
  card: Card;
  /** The newest first. */
  evidence: EvidenceLine[];
  groups: Span[];
  managerView: ManagerShown;
  monitorView: MonitorView;
  runs: Run[];
}

/** A session of ours, `sess_<uuid>`. Vendor ids are attributes that find it. */
export type SessionId = string;

/** `GET /api/live/sessions`, and the stream's `snapshot`. */
export interface SessionList {
  sessions: Card[];
  summary: Summary;
}

/** `POST /api/sign-in`. */
export interface SignIn {
  code: string;
}

/** Where a fact came from. The order is that of trust, least first: it breaks ties of time, and nothing else (a newer fact wins over a more trusted one). */
export type Source = "fallback" | "process" | "otel" | "jsonl" | "hook" | "registry" | "driver";

/** A stretch of time in one state. Without an end it lasts. */
export interface Span {
  from: Timestamp;
  group: Group;
  state: SubState;
  to?: Timestamp;
}

/** Tokens and money, under the names that the usage report has. A session's usage holds all of it or nothing, so nothing of it is promised. */
export interface SpentView {
  cacheCreationTokens?: number;
  cacheReadTokens?: number;
  costUsd?: number;
  /** A part of the money is a guess: the price of a model is not known. */
  estimated?: boolean;
  inputTokens?: number;
  outputTokens?: number;
  totalTokens?: number;
}

/** A sub-state within its group: an open set. A reader that does not know one shows its text with the group's icon. */
export type SubState = string;

export interface SubagentView {
  activity: string;
  agentId: string;
  kind?: string;
}

/** `GET /api/live/summary`. */
export interface Summary {
  autonomousCount: number;
  deliveredCount: number;
  needsYouCount: number;
  /** On the operator's day, once the files are read. */
  totalCostTodayUsd?: number;
  totalTokensToday?: number;
}

/** Milliseconds since the Unix epoch. Comes in with the event; nothing here asks a clock. */
export type Timestamp = number;

/** The name of a tool, as its agent spells it. */
export type ToolName = string;

export interface ToolUse {
  failed?: boolean;
  input?: unknown;
  /** Empty in a piece that is only a result. */
  name: string;
  output?: string;
}

/** `GET /api/usage`. */
export interface UsageReport {
  /** The day of the prices. */
  pricesOf?: string;
  /** By time, the oldest first; else the dearest first. */
  rows: UsageRow[];
  totals: UsageTotals;
  /** What could not be read. */
  troubles: UsageTrouble[];
}

export type UsageRow = UsageTotals & {
  harness?: Harness;
  /** The day, the model, the session; none where the files do not say. */
  key?: string;
  project?: string;
};

/** Under the names that `qd usage --json` has. */
export interface UsageTotals {
  cacheCreationTokens: number;
  cacheReadTokens: number;
  estimated: boolean;
  inputTokens: number;
  outputTokens: number;
  totalCost: number;
  totalTokens: number;
}

export interface UsageTrouble {
  path: string;
  what: string;
}

export type UsageView = SpentView & {
  contextTokens?: number;
  contextWindow?: number;
  model?: string;
};

/** The body of `POST /api/sessions/{id}/yolo`. */
export interface YoloWanted {
  on: boolean;
}
