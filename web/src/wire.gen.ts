/** What the server says, as it spells it. Made from the server's own types by
 * `WIRE_UPDATE=1 cargo test -p qd-server --test wire`. */

/** `GET /api/health`: who we are and how we are. */
export type About = Health & {
  pid: number;
  port: number;
  /** Those whom notices go to, and how they fare. */
  receivers: ReceiverView[];
  /** Hooks that scripts posted and that were not taken. */
  refusedHooks: RefusedHooks;
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

/** The body of `POST /api/sessions/archive`: these sessions, or all that were silent for so long. */
export interface ArchiveWanted {
  sessions?: string[];
  silentForMs?: number;
}

/** The sessions that were moved. One that is not among them has something that lives, or was there before. */
export interface Archived {
  sessions: SessionId[];
}

/** Where a driven session is, in full, and what was said in it last. */
export interface AttachedTo {
  /** The newest messages, the oldest of them first. */
  messages: unknown[];
  /** How many there are in all. */
  messagesLen: number;
  /** Its newest runs as they are now, errors, and turns of its state: `agent:state_event`s, with the arguments of a call that is in no message. */
  notes: unknown[];
  /** The machine's state with all that is valid in it; `kind` is its name. */
  state: unknown;
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
  /** Whether it can be put into History: nothing of it is known to live. */
  canArchive: boolean;
  canFocus: boolean;
  canInterrupt: boolean;
  canPause: boolean;
  canPrompt: boolean;
  canResume: boolean;
  canRetry: boolean;
  canStop: boolean;
  canYolo: boolean;
  /** A sentence for each that is false, by its name. */
  why: Record<string, string>;
}

export interface Card {
  agentState: AgentState;
  /** The other processes that have the same session open. */
  alsoOpenIn?: ProcessView[];
  /** The operator has put it into History. */
  archived?: boolean;
  branch?: string;
  /** What can be done with it from here. */
  capabilities: Capabilities;
  cwd?: string;
  drive?: DriveView;
  /** We started it, and its state is known, not believed. */
  driven: boolean;
  forkedFrom?: SessionId;
  harness: Harness;
  /** A domain layer's; else the sub-state has one of its own. */
  icon?: string;
  lastSignal: Timestamp;
  /** The client's permission mode, in its own words. */
  mode?: string;
  monitorView: MonitorView;
  policy?: PolicyView;
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
  /** The client's version. */
  version?: string;
  /** How that stands to the versions that were tested, for a person: `tested`, `newer than tested (2.1.325 to 2.1.326)`. */
  versionNote?: string;
  where?: ProcessView;
}

/** A whole answer of `POST /api/chat/prompt` or `/tool` without a stream. */
export interface ChatAnswer {
  errors?: string[];
  response: string;
  sessionId: SessionId;
  /** The sub-state it rests in. */
  state: string;
  /** `success` or `error`. */
  status: string;
}

/** How a chat is set. */
export interface ChatConfig {
  /** It asks nobody. */
  yoloMode: boolean;
}

/** The body of `PATCH /api/chat/config`. */
export interface ChatConfigWanted {
  folderPath?: string;
  sessionId?: string;
  yoloMode: boolean;
}

/** The body of `POST /api/chat/prompt`. */
export interface ChatPrompt {
  /** The folder it works in; needed where no session is named. */
  folderPath?: string;
  model?: string;
  prompt: string;
  /** Whom to ask, as the configuration names it. */
  provider?: string;
  sessionId?: string;
  /** `false` for the whole answer at once. */
  stream?: boolean;
}

/** The body of `POST /api/chat/tool`. */
export interface ChatTools {
  sessionId: string;
  stream?: boolean;
  toolCalls: ToolDecision[];
}

export interface ClientVersion {
  /** How it stands to the versions that were tested. */
  note?: string;
  version: string;
}

/** A client, as sessions on the board and its own words show it. */
export interface ClientView {
  harness: Harness;
  /** Messages and lines that could not be read. */
  unrecognised: number;
  versions: ClientVersion[];
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
  /** The request's `revision`, as it was shown. Where it asks for something else by now, nothing is sent and the answer is 409 `replaced`. Without it nothing is allowed of a request that has changed: 409 `revision_needed`. */
  revision?: string;
}

/** A device, as others may know it. */
export interface DeviceView {
  id: string;
  label: string;
  /** Whose push service brings it there. */
  service: string;
  sinceS: number;
}

export interface DriveView {
  hookRun?: unknown;
  lastError?: unknown;
  model?: string;
  /** What happens where no rule says anything, as it is effective: a repository may lower it. */
  preset?: string;
  /** What a retry would repeat. */
  retry?: unknown;
  since: Timestamp;
  /** The machine's state, by its name. */
  state: string;
  /** Of the batch that is worked on, or was last. */
  toolRuns: unknown[];
  turnId?: TurnId;
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

/** How a folder came to be known. */
export type FolderOrigin = "environment" | "config" | "running_client";

/** A folder that is followed, for people. */
export interface FolderView {
  harness: Harness;
  origin: FolderOrigin;
  path: string;
}

/** The three groups of the board. Fixed for ever: the protocol hangs on them. */
export type Group = "needs_you" | "autonomous" | "delivered";

/** An agent product, as captures and the wire spell it. */
export type Harness = "claude_code" | "codex" | "gemini_cli" | "kilo_code" | "cline" | "opencode" | "acp" | "native";

/** What sessions can be begun with. */
export interface HarnessList {
  harnesses: HarnessOffered[];
}

export interface HarnessOffered {
  /** As [`SessionWanted`] takes it. */
  harness: string;
  possible: boolean;
  /** What can be chosen as its provider. */
  providers?: string[];
  /** Why not. */
  why?: string;
}

/** How the daemon itself is. */
export interface Health {
  /** Everything that was there at the start has been read. */
  caughtUp: boolean;
  /** Changes shown so far. */
  changes: number;
  /** What was heard of each client. */
  clients: ClientView[];
  /** Hooks that were longer than what is kept of one: all but their longest parts was taken. */
  cut?: number;
  /** Entries that could never be written. */
  dropped: number;
  /** Folders in which clients keep their files. */
  folders: FolderView[];
  /** Hooks taken, from the socket and from the spool. */
  hooks: number;
  /** Why the journal takes nothing, while it takes nothing. */
  journalError?: string;
  /** Troubles with session files, told in the log. */
  notices: number;
  /** Hooks that were ignored, because another program ran them than the client they were installed for: how many, by the program. */
  otherCallers: Record<string, number>;
  /** Hooks that were sent back to be spooled. */
  refused: number;
  sessions: number;
  setBack?: SetBack;
  /** Those of them that lay in the spool. */
  spooled: number;
  /** Hooks that were ignored, because the process that sent them does not hold the session that they named. */
  strangers?: number;
  /** What is wrong now, each with what to do about it. */
  troubles: Trouble[];
  /** Hooks of agents that are not known here. */
  unknown: number;
}

/** The daemon's answer to a browser that wants to know who it speaks to. */
export interface Hello {
  /** What the browser proves itself by, until the daemon starts again. */
  challenge: string;
  /** That we have the browser's key. */
  proof: string;
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
  /** The file that leads there. It goes when the link is used, or after a minute. */
  file?: string;
  livesS: number;
  /** To be put behind the address by which the browser reaches us. */
  path: string;
}

/** `POST /api/links`: what the link shall allow; `operate` if it does not say. */
export interface LinkWanted {
  /** Also write a file that leads a browser of this machine there. */
  file?: boolean;
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

export type Origin = "session" | "project" | "global" | "repository" | "preset";

export type Outcome = "ok" | "error" | "failed" | "denied" | "interrupted";

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

/** What holds for a session by the operator's rules. */
export interface PolicyView {
  from?: Origin;
  /** What is allowed where no rule says anything, as it is effective: a repository may lower it. */
  preset: Preset;
  /** Rules that hold, of all layers. */
  rules: number;
  /** A file of the project says that it may not run without asking. */
  yoloForbidden?: boolean;
}

/** The body of `POST /api/sessions/{id}/policy`. */
export interface PolicyWanted {
  preset?: Preset;
}

/** The body of `POST /api/presence`. */
export interface PresenceTold {
  /** It shows the board. */
  board?: boolean;
  /** The operator has it before them, and moved something not long ago. */
  focused: boolean;
  /** The session whose page it shows. */
  session?: string;
  /** What the tab called itself when it opened its stream. */
  tab: string;
}

/** What happens where no rule says anything, from the strictest on. */
export type Preset = "manual" | "careful" | "auto-edit" | "yolo";

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

/** `GET /api/push/key`. */
export interface PushKeyView {
  /** For `applicationServerKey`. */
  key: string;
}

/** How far an allowance reaches. */
export type Reach = "once" | "session" | "always";

/** How a receiver fares. */
export interface ReceiverView {
  /** Notices that were dropped because too many waited. */
  dropped: number;
  failed: number;
  /** `webhook hooks.example`, `push Firefox on Linux`. */
  name: string;
  sent: number;
  /** Why the last one failed, if no other has arrived since. */
  trouble?: string;
  waiting: number;
}

/** Hooks that were posted and refused, since the daemon started. */
export interface RefusedHooks {
  /** 400: the body is no JSON, or names no session. */
  broken: number;
  /** 401: the script sends no token. */
  withoutToken: number;
  /** 401: the script's token opens nothing. */
  wrongToken: number;
}

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
  /** The daemon has not all of the input or the text, so that nobody can read here what would run. */
  cut?: boolean;
  hiddenUntil?: Timestamp;
  input?: unknown;
  key?: RequestKey;
  kind: RequestKind;
  /** The modes that may follow a plan, in the client's words. */
  modes?: string[];
  /** The agent's own. */
  requestId: string;
  /** Changes with the tool, the text and the input. An answer that names another one is refused. */
  revision?: string;
  /** How far beyond this once it can be allowed from here. */
  scopes?: Reach[];
  since: Timestamp;
  /** What "always" would keep, in words. */
  suggestions?: string[];
  /** Whether it can be allowed from here with another input than the one it asked with. */
  takesChanges: boolean;
  /** Whether a denial from here may say why. */
  takesWords: boolean;
  text?: string;
  tool?: string;
  /** How an answer would reach the agent: `hook`, `codex`, `opencode`; `recording`, where there is none to be reached. None: not from here. */
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

/** A session has begun. */
export interface SessionBegun {
  sessionId: SessionId;
}

/** `GET /api/live/sessions/{id}`. */
export interface SessionDetail {
  attached?: AttachedTo;
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

/** The body of `POST /api/sessions`. */
export interface SessionWanted {
  /** `claude-code`, `codex`, `native`, … */
  harness: string;
  model?: string;
  /** `manual`, `careful`, `auto-edit` or `yolo`; `careful` if it does not say. */
  preset?: string;
  /** What it is told as soon as it can hear. */
  prompt?: string;
  /** Whom to ask for answers, as the configuration names it. */
  provider?: string;
  /** The folder it works in, from the root. */
  workspace: string;
}

/** The last time that the clock was set back. */
export interface SetBack {
  /** By the clock as it is now. */
  at: Timestamp;
  byMs: number;
}

/** `POST /api/sign-in`. */
export interface SignIn {
  code: string;
}

/** A browser's key. It is sent this once. */
export interface SignedIn {
  browser: string;
  key: string;
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

/** What a browser says of itself when it subscribes. */
export interface Subscription {
  endpoint: string;
  keys: SubscriptionKeys;
  /** What the operator calls the device. */
  label?: string;
}

export interface SubscriptionKeys {
  auth: string;
  p256dh: string;
}

/** `GET /api/live/summary`. */
export interface Summary {
  autonomousCount: number;
  deliveredCount: number;
  needsYouCount: number;
  /** On the operator's day, once the files are read. */
  totalCostTodayUsd?: number;
  totalTokensToday?: number;
  /** Agents that run and cannot be read: nothing else is known of them. */
  unreadable?: UnreadableAgent[];
}

/** A test is on its way. */
export interface TestSent {
  /** To so many. */
  receivers: number;
}

/** The body of `POST /api/push/test`. */
export interface TestWanted {
  /** The device; every receiver if it is left out. */
  id?: string;
}

/** Milliseconds since the Unix epoch. Comes in with the event; nothing here asks a clock. */
export type Timestamp = number;

/** It asks before it goes on. */
export interface ToolApprovalRequired {
  code: string;
  message: string;
  sessionId: SessionId;
  /** As the `TOOL_USE` lines of a stream. */
  toolCalls: unknown[];
}

/** What somebody says to a call. */
export interface ToolDecision {
  approved: boolean;
  /** Why not; to a question, the answer. */
  message?: string;
  tool_id: string;
}

/** The name of a tool, as its agent spells it. */
export type ToolName = string;

export interface ToolUse {
  failed?: boolean;
  input?: unknown;
  /** Empty in a piece that is only a result. */
  name: string;
  output?: string;
}

/** Something that keeps the board from being true or the journal from being whole. */
export interface Trouble {
  /** What to do about it. */
  advice: string;
  kind: TroubleKind;
  /** What happened, in a sentence. */
  what: string;
}

export type TroubleKind = "journal_unwritable" | "journal_gap" | "journal_written_anew" | "hooks_dropped" | "watches_exhausted" | "few_open_files";

/** One model request and its stream, `turn_<uuid>`. On the wire it is the `streamId`. */
export type TurnId = string;

/** The body of `POST /api/sessions/unarchive`. */
export interface UnarchiveWanted {
  sessions: string[];
}

export interface UnreadableAgent {
  cwd?: string;
  /** What would help. */
  help: string;
  pid: number;
  /** As its makers write it. */
  product: string;
  startedAt?: Timestamp;
  tty?: string;
  why: string;
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
