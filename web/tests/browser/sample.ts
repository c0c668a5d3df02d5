/** Boards for tests: cards as the server writes them. */

import type {
  AgentState,
  Capabilities,
  Card,
  Evidence,
  Group,
  RequestView,
  SessionDetail,
  SessionList,
  TranscriptEntry,
} from "../../src/wire";

/** Every sub-state that is known, and one that nobody knows. */
export const SUB_STATES: readonly (readonly [Group, string])[] = [
  ...["needs_permission", "awaiting_input", "error", "usage_limit", "auth_error", "server_error"].map(
    (state) => ["needs_you", state] as const,
  ),
  ...["awaiting_approval", "budget_exceeded", "paused", "interrupted", "idle"].map(
    (state) => ["needs_you", state] as const,
  ),
  ...["starting", "thinking", "acting", "delegating", "compacting", "retrying", "hooks", "stopping"].map(
    (state) => ["autonomous", state] as const,
  ),
  ["autonomous", "unknown"],
  ["delivered", "task_complete"],
  ["delivered", "session_ended"],
  ["needs_you", "nobody_knows_it"],
  ["autonomous", "constructor"],
];

export const HOSTILE = `<img src=x onerror="alert(1)"><script>alert(2)</script>`;

/** One moment for all: the order of cards must not hang on the clock. */
const NOW = Date.now();

/** A session that nothing can be done with. */
export const NOTHING: Capabilities = {
  canApprove: false,
  canAnswer: false,
  canPrompt: false,
  canInterrupt: false,
  canStop: false,
  canResume: false,
  canYolo: false,
  canFocus: false,
  canPause: false,
  canRetry: false,
  canArchive: false,
  why: {},
};

export function card(id: string, group: Group, state: string, more: Partial<Card> = {}): Card {
  const since = NOW - 90_000;
  const evidence: Evidence[] = [{ source: "hook", at: since, event: "approval_requested" }];
  const agentState: AgentState = {
    group,
    state,
    label: `Label of ${state}`,
    confidence: 0.99,
    source: "hook",
    rule: "a rule says so",
    since,
    evidence,
  };
  return {
    sessionId: id,
    harness: "claude_code",
    vendorId: `vendor-${id}`,
    title: `Session ${id}`,
    cwd: "/home/ada/work/atlas",
    branch: "main",
    version: "2.1.330",
    versionNote: "newer than tested (2.1.325 to 2.1.326)",
    mode: "default",
    agentState,
    monitorView: { state: "idle" },
    usage: {
      model: "claude-opus-5-5",
      contextTokens: 150_000,
      contextWindow: 200_000,
      totalTokens: 1_340_000,
      costUsd: 3.42,
    },
    capabilities: NOTHING,
    requests: [],
    subagents: [],
    driven: false,
    startedAt: since,
    lastSignal: since,
    unrecognised: 0,
    where: { pid: 48213, tty: "/dev/pts/4", tmux: "work:2.1" },
    resumeCommand: `claude --resume vendor-${id}`,
    ...more,
  };
}

export function list(sessions: Card[]): SessionList {
  const count = (group: Group) => sessions.filter((each) => each.agentState.group === group).length;
  const summary = {
    needsYouCount: count("needs_you"),
    autonomousCount: count("autonomous"),
    deliveredCount: count("delivered"),
  };
  return { sessions, summary: { ...summary, totalCostTodayUsd: 18.42, totalTokensToday: 9_400_000 } };
}

const request = (requestId: string, kind: RequestView["kind"], input: unknown): RequestView => ({
  requestId,
  kind,
  input,
  since: Date.now(),
  takesWords: true,
  takesChanges: false,
});

/** One of each thing that can be asked, and subagents. */
export const asking = (): SessionList =>
  list([
    card("command", "needs_you", "needs_permission", {
      requests: [
        request("r1", "permission", {
          command: "docker compose up -d \\\n  && cargo test",
          description: "Run the tests",
        }),
      ],
    }),
    card("change", "needs_you", "needs_permission", {
      requests: [
        request("r2", "permission", {
          file_path: "/home/ada/limits.rs",
          old_string: "a\nold\n",
          new_string: "a\nnew\n",
        }),
      ],
    }),
    card("question", "needs_you", "awaiting_input", {
      requests: [
        request("r3", "question", {
          questions: [
            {
              question: "Which database?",
              options: [{ label: "SQLite", description: "a file" }, { label: "Postgres" }],
            },
          ],
        }),
      ],
    }),
    card("plan", "needs_you", "awaiting_approval", {
      requests: [
        request("r4", "plan", { plan: `# Split it\n\n1. **Move** the \`readers\`\n2. Ship\n\n${HOSTILE}` }),
      ],
      title: HOSTILE,
    }),
    card("helped", "autonomous", "delegating", {
      mode: "bypassPermissions",
      subagents: [
        { agentId: "a1", kind: "Explore", activity: "acting" },
        { agentId: "a2", activity: "thinking" },
      ],
    }),
    card("done", "delivered", "task_complete"),
  ]);

/** A session that somebody else started and with which everything can be done. */
export const ALL: Capabilities = {
  canApprove: true,
  canAnswer: true,
  canPrompt: true,
  canInterrupt: true,
  canStop: true,
  canResume: true,
  canYolo: true,
  canFocus: true,
  canPause: false,
  canRetry: false,
  canArchive: false,
  why: {},
};

/** `asking`, on a machine where each request has a way. */
export const answerable = (): SessionList => {
  const { sessions } = asking();
  return list(
    sessions.map((each) => ({
      ...each,
      capabilities: ALL,
      policy: { preset: "careful" as const, from: "project" as const, rules: 0 },
      requests: each.requests.map((one) => ({
        ...one,
        key: `req_${one.requestId}`,
        way: "hook",
        takesChanges: one.kind === "permission",
        ...(each.sessionId === "command"
          ? {
              scopes: ["session" as const, "always" as const],
              suggestions: ["Bash(cargo test:*) in this project", "Bash(docker compose:*)"],
            }
          : {}),
        ...(one.kind === "plan" ? { modes: ["default", "acceptEdits"] } : {}),
      })),
    })),
  );
};

/** A session of our own, as it is while a tool of it waits for a yes. */
export function driven(id: string, more: Partial<Card> = {}): Card {
  const {
    mode: _,
    where: __,
    resumeCommand: ___,
    branch: ____,
    ...rest
  } = card(id, "needs_you", "needs_permission");
  return {
    ...rest,
    harness: "native",
    title: "Add a limit to the upload",
    driven: true,
    drive: {
      state: "AwaitingApproval",
      since: NOW - 4_000,
      preset: "careful",
      model: "claude-opus-5-5",
      toolRuns: [],
    },
    capabilities: {
      ...NOTHING,
      canApprove: true,
      canInterrupt: true,
      canStop: true,
      canYolo: true,
      canPause: true,
    },
    ...more,
  };
}

const at = (ms: number) => NOW - 120_000 + ms;

const CALLS = [
  { callId: "c1", name: "read_file", arguments: { path: "src/upload.rs" } },
  { callId: "c2", name: "bash", arguments: { command: "cargo test --workspace upload" } },
];

/** What was said and done in it. */
export const conversation = (): NonNullable<SessionDetail["attached"]> => ({
  state: {
    kind: "AwaitingApproval",
    batch: [{ call: { callId: "c3", name: "edit_file", arguments: EDIT }, fate: "undecided" }],
  },
  messagesLen: 4,
  messages: [
    { from: "operator", at: at(0), text: `Add a limit of 10 MB to the upload. ${HOSTILE}` },
    {
      from: "agent",
      at: at(4_000),
      turn: "turn_1",
      text: "I will look at **upload.rs** and at its tests first.",
      calls: CALLS,
      message: { blocks: [{ type: "thinking", text: "Where is the body read? Look before writing." }] },
    },
    {
      from: "operator",
      at: at(12_000),
      outputs: [
        { callId: "c1", content: "pub fn upload(body: Body) {}", isError: false },
        { callId: "c2", content: "test upload::large ... FAILED\nexit code 101", isError: true },
      ],
    },
    {
      from: "agent",
      at: at(20_000),
      turn: "turn_2",
      text: "The test expects `413`. I will add the limit:\n\n1. a constant\n2. a check before the body is read",
      calls: [{ callId: "c3", name: "edit_file", arguments: EDIT }],
    },
  ],
  notes: [
    ran("c1", "read_file", at(4_100), at(4_140)),
    ran("c2", "bash", at(4_150), at(11_900)),
    {
      ...told("h1", at(12_000)),
      type: "hook_lifecycle",
      runId: "hook_1",
      hookName: "format",
      toolRunIds: [],
      status: "succeeded",
      attempt: 1,
      startedAtMs: at(11_920),
      finishedAtMs: at(11_990),
    },
    { ...told("p1", at(13_000)), type: "state_changed", from: "CallingLlm", to: "Paused", reason: "paused" },
    { ...told("p2", at(15_000)), type: "state_changed", from: "Paused", to: "CallingLlm", reason: "resumed" },
  ],
});

const EDIT = {
  path: "src/upload.rs",
  old_text: "pub fn upload(body: Body) {}",
  new_text: "const LIMIT: u64 = 10 << 20;\n\npub fn upload(body: Body) {}",
};

/** It asks to change the file. */
export const EDIT_REQUEST: RequestView = {
  requestId: "c3",
  key: "req_c3",
  way: "driver",
  kind: "permission",
  tool: "edit_file",
  input: EDIT,
  since: at(20_000),
  takesWords: true,
  takesChanges: false,
};

function told(eventId: string, timestampMs: number) {
  return { eventId, timestampMs, sessionId: "driven" };
}

export const ran = (
  callId: string,
  toolName: string,
  startedAtMs: number,
  finishedAtMs?: number,
  more: object = {},
) => ({
  ...told(`e-${callId}-${startedAtMs}`, finishedAtMs ?? startedAtMs),
  type: "tool_lifecycle",
  runId: `run_${callId}`,
  callId,
  toolName,
  mutating: false,
  status: finishedAtMs === undefined ? "running" : "succeeded",
  attempt: 1,
  startedAtMs,
  ...(finishedAtMs === undefined ? {} : { finishedAtMs }),
  ...more,
});

export function detail(of: Card): SessionDetail {
  const now = Date.now();
  return {
    card: of,
    managerView: {
      state: "idle",
      inputEnabled: true,
      isActive: false,
      showAutoModeWarning: false,
      showCancelButton: false,
      showResumeButton: false,
      showSpinner: false,
    },
    monitorView: of.monitorView,
    evidence: [{ at: now - 70_000, source: "hook", text: `a permission was asked for ${HOSTILE}` }],
    runs: [
      {
        id: "1",
        name: "Read",
        detail: "src/login.rs",
        startedAt: now - 300_000,
        endedAt: now - 299_000,
        outcome: "ok",
      },
      {
        id: "2",
        name: "Bash",
        detail: HOSTILE,
        startedAt: now - 200_000,
        endedAt: now - 100_000,
        outcome: "failed",
      },
      { id: "3", name: "Bash", startedAt: now - 50_000 },
    ],
    groups: [
      { group: "autonomous", state: "thinking", from: now - 600_000, to: now - 90_000 },
      { group: "needs_you", state: "needs_permission", from: now - 90_000 },
    ],
  };
}

export function entries(count: number): TranscriptEntry[] {
  const at = Date.now() - 3_600_000;
  return Array.from({ length: count }, (_, index): TranscriptEntry => {
    const entry = { id: `e${index}`, at: at + index * 1_000 };
    switch (index % 3) {
      case 0:
        return { ...entry, role: "user", text: `Prompt ${index} ${HOSTILE}` };
      case 1:
        return {
          ...entry,
          role: "assistant",
          text: `Answer **${index}** with \`code\` ${HOSTILE}\n\n- [x](javascript:alert(3))`,
        };
      default:
        return {
          ...entry,
          role: "tool",
          tool: { name: "Bash", input: { command: `run ${index}` }, output: HOSTILE, failed: true },
        };
    }
  });
}
