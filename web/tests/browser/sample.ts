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

/** A session with which everything can be done. */
export const ALL: Capabilities = {
  canApprove: true,
  canAnswer: true,
  canPrompt: true,
  canInterrupt: true,
  canStop: true,
  canResume: true,
  canYolo: true,
  canFocus: true,
  why: {},
};

/** `asking`, on a machine where each request has a way. */
export const answerable = (): SessionList => {
  const { sessions } = asking();
  return list(
    sessions.map((each) => ({
      ...each,
      capabilities: ALL,
      policy: "careful",
      requests: each.requests.map((one) => ({
        ...one,
        key: `req_${one.requestId}`,
        way: "hook",
        ...(each.sessionId === "command"
          ? { suggestions: ["Bash(cargo test:*) in this project", "Bash(docker compose:*)"] }
          : {}),
        ...(one.kind === "plan" ? { modes: ["default", "acceptEdits"] } : {}),
      })),
    })),
  );
};

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
