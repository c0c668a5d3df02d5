/** What the server says, as it spells it. Every wire type of the page comes from this file. */

/** Milliseconds since 1970. */
export type Timestamp = number;

export type Group = "needs_you" | "autonomous" | "delivered";

export type Source = string;

export type Harness = string;

/** The last signal of one source. */
export interface Evidence {
  source: Source;
  at: Timestamp;
  event: string;
}

export interface AgentState {
  group: Group;
  /** An open set: one that is not known shows with its group's icon. */
  state: string;
  label: string;
  /** The core's words, where a domain layer has put others in their place. */
  coreLabel?: string;
  /** A domain layer's: 1 before the others of the group, -1 after them. */
  urgency?: number;
  /** 0 to 1. */
  confidence: number;
  source: Source;
  rule: string;
  context?: Record<string, unknown>;
  since: Timestamp;
  evidence: Evidence[];
}

export interface UsageView {
  model?: string;
  contextTokens?: number;
  contextWindow?: number;
  inputTokens?: number;
  outputTokens?: number;
  cacheReadTokens?: number;
  cacheCreationTokens?: number;
  totalTokens?: number;
  costUsd?: number;
  estimated?: boolean;
}

export type RequestKind = "plan" | "question" | "permission";

export interface RequestView {
  requestId: string;
  kind: RequestKind;
  agent?: string;
  tool?: string;
  text?: string;
  input?: unknown;
  since: Timestamp;
}

export interface SubagentView {
  agentId: string;
  kind?: string;
  activity: string;
}

export interface Where {
  pid?: number;
  tty?: string;
  tmux?: string;
  program?: string;
}

export interface MonitorView {
  state: string;
  subState?: string;
}

export interface Card {
  sessionId: string;
  harness: Harness;
  vendorId: string;
  title?: string;
  cwd?: string;
  branch?: string;
  transcript?: string;
  forkedFrom?: string;
  mode?: string;
  agentState: AgentState;
  monitorView: MonitorView;
  usage: UsageView;
  requests: RequestView[];
  subagents: SubagentView[];
  lastSignal: Timestamp;
  unrecognised: number;
  where?: Where;
  resumeCommand?: string;
  /** A domain layer's. */
  icon?: string;
  startedAt?: Timestamp;
}

export interface Summary {
  needsYouCount: number;
  autonomousCount: number;
  deliveredCount: number;
  totalCostTodayUsd?: number;
  totalTokensToday?: number;
}

export interface SessionList {
  sessions: Card[];
  summary: Summary;
}

export interface SessionRemoved {
  sessionId: string;
}

export interface Goodbye {
  reason: "slow" | "stopping";
}

export interface Problem {
  code: string;
  message: string;
  /** The same request may succeed later. */
  retryable: boolean;
}

export interface EvidenceLine {
  at: Timestamp;
  source: Source;
  text: string;
}

export type RunOutcome = "ok" | "failed" | "denied" | "interrupted";

export interface RunView {
  id: string;
  name: string;
  detail?: string;
  agent?: string;
  startedAt: Timestamp;
  endedAt?: Timestamp;
  outcome?: RunOutcome;
}

/** A stretch of time in one state; without `to` it lasts. */
export interface GroupSpan {
  group: Group;
  state: string;
  from: Timestamp;
  to?: Timestamp;
}

export interface SessionDetail {
  card: Card;
  managerView: unknown;
  monitorView: MonitorView;
  evidence: EvidenceLine[];
  runs: RunView[];
  groups: GroupSpan[];
}

export type Role = "user" | "assistant" | "tool" | "system";

export interface ToolUse {
  name: string;
  input?: unknown;
  output?: unknown;
  failed?: boolean;
}

export interface TranscriptEntry {
  id: string;
  at?: Timestamp;
  role: Role;
  text?: string;
  tool?: ToolUse;
  agent?: string;
  model?: string;
}

/** Entries oldest first. */
export interface TranscriptPage {
  entries: TranscriptEntry[];
  /** Cursor of the page before this one. */
  before?: string;
  /** Cursor for what comes after this page. */
  after?: string;
  more: boolean;
}

export type UsageBy = "day" | "week" | "month" | "model" | "project" | "session" | "harness";

export interface UsageTotals {
  inputTokens: number;
  outputTokens: number;
  cacheCreationTokens: number;
  cacheReadTokens: number;
  totalTokens: number;
  totalCost: number;
  estimated?: boolean;
}

export interface UsageRow extends UsageTotals {
  key: string;
}

export interface UsageReport {
  rows: UsageRow[];
  totals: UsageTotals;
}

export interface HistoryEntry {
  sessionId: string;
  harness: Harness;
  title?: string;
  project?: string;
  startedAt: Timestamp;
  endedAt: Timestamp;
  totalTokens?: number;
  costUsd?: number;
  snippet?: string;
}

export interface HistoryPage {
  sessions: HistoryEntry[];
  before?: string;
}

export interface About {
  version: string;
  pid: number;
  port: number;
  caughtUp: boolean;
  sessions: number;
  journalError?: string;
}
