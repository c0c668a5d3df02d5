/** Sessions of our own in a real browser, fed with what the daemon says of one: each state, each press. */

import type { BrowserContextOptions } from "playwright-core";
import { expect, test } from "vitest";

import type { Card, SessionDetail } from "../../src/wire";
import type { Between } from "./between";
import { accessible, DESK, picture, type Tab } from "./browser";
import { card, conversation, detail, driven, EDIT_REQUEST, list, NOTHING, ran } from "./sample";
import { HAND, isRead, stage } from "./stage";

const enter = stage();

interface Followed extends Tab {
  between: Between;
  /** The board says that the session has changed. */
  change: (more: Partial<Card>, attached?: SessionDetail["attached"]) => void;
  tell: (name: "agent:state_event" | "agent:stream_event", data: object) => void;
}

const asking = () => driven("driven", { requests: [EDIT_REQUEST] });

async function shown(
  first: Card,
  options: BrowserContextOptions = {},
  path = `/sessions/driven`,
): Promise<Followed> {
  let current = first;
  let attached: SessionDetail["attached"] = conversation();
  const set = (between: Between) => {
    between.board(list([first, card("other", "autonomous", "thinking")]));
    between.json(/^\/api\/live\/sessions\/driven$/, () => ({ ...detail(current), attached }));
    between.take(/^\/api\/(sessions|requests)\//, () => ({
      value: { decisionId: "dec_1", state: "confirmed" },
    }));
  };
  const there = await enter({ set, options, path, until: "[data-session=driven]" });
  return {
    ...there,
    tell: (name, data) => there.tell(name, { sessionId: "driven", ...data }),
    change: (more, then) => {
      current = { ...current, ...more };
      attached = then ?? attached;
      there.tell("session_changed", current);
    },
  };
}

const told = ({ between }: Followed) =>
  between.told.map(({ path, body }) => [path.replace(/^\/api\//, ""), body]);

const working = (state = "CallingLlm"): Partial<Card> => ({
  requests: [],
  agentState: { ...card("x", "autonomous", "thinking").agentState, label: "Thinking" },
  drive: { ...asking().drive!, state },
  capabilities: { ...NOTHING, canInterrupt: true, canStop: true, canYolo: true, canPause: true },
});

const ready = (): Partial<Card> => ({
  requests: [],
  agentState: { ...card("x", "delivered", "task_complete").agentState, label: "Task complete" },
  drive: { ...asking().drive!, state: "Ready" },
  capabilities: { ...NOTHING, canPrompt: true, canStop: true, canYolo: true, canPause: true },
});

test.each([
  ["desk", { viewport: DESK }],
  ["phone", HAND],
])("the conversation is there with its tools, its hooks and its pauses (%s)", async (name, options) => {
  const tab = await shown(asking(), options);
  const { page, troubles } = tab;
  const log = page.getByRole("log", { name: "Conversation" });
  await log.getByText("The test expects").waitFor();
  expect(await log.getByText("onerror").textContent()).toContain("<script>");
  const cards = log.locator(".step-card");
  expect(await cards.locator(".tool-name").allTextContents()).toEqual([
    "read_file",
    "bash",
    "format",
    "edit_file",
  ]);
  expect(await cards.locator(".step-status").allTextContents()).toEqual([
    "succeeded",
    "returned an error",
    "succeeded",
    "waits for you",
  ]);
  expect(await log.locator(".step-note span").allTextContents()).toEqual(["Paused", "Goes on"]);
  await log.getByText("cargo test --workspace upload").first().click();
  await log.getByText("test upload::large ... FAILED").waitFor();
  await log.getByText("Thinking").click();
  await log.getByText("Look before writing").waitFor();
  const action = page.getByRole("region", { name: "Action required" });
  expect(await action.locator(".request-tool").textContent()).toBe("edit_file");
  expect(await action.textContent()).toContain("const LIMIT: u64 = 10 << 20;");
  await picture(page, `driven-asks-${name}`);
  await accessible(page);
  expect(troubles).toEqual([]);
});

test("y allows and n denies what the session waits for", async () => {
  const tab = await shown(asking());
  await tab.page.getByRole("button", { name: "Deny with message" }).click();
  await tab.page.getByLabel("Why it is denied").fill("Make it 20 MB");
  await tab.page.keyboard.press("Escape");
  await isRead(tab.page.locator("[data-session]"));
  await tab.page.keyboard.press("n");
  await expect.poll(() => told(tab)).toHaveLength(1);
  tab.change({ requests: [{ ...EDIT_REQUEST, key: "req_c4" }] });
  await tab.page.locator("[data-key=req_c4]").waitFor();
  await isRead(tab.page.locator("[data-session]"));
  await tab.page.keyboard.press("y");
  await expect
    .poll(() => told(tab))
    .toEqual([
      [
        "requests/req_c3/decision",
        { decision: { type: "deny", message: "Make it 20 MB" }, key: expect.any(String) },
      ],
      ["requests/req_c4/decision", { decision: { type: "allow" }, key: expect.any(String) }],
    ]);
  // Nothing opened meanwhile.
  expect(await tab.page.locator("dialog[open]").count()).toBe(0);
});

test("an answer shows as it comes, in order, and gives way to the whole one", async () => {
  const tab = await shown(asking());
  const { page, tell, change, troubles } = tab;
  const log = page.getByRole("log", { name: "Conversation" });
  await log.getByText("The test expects").waitFor();
  change(working());
  let seq = 0;
  const piece = (type: string, payload: object, nth = (seq += 1)) =>
    tell("agent:stream_event", { streamId: "turn_3", seq: nth, timestampMs: Date.now(), type, payload });
  piece("thinking_delta", { text: "Which limit? " });
  await log.getByText("Which limit?").waitFor();
  piece("text_delta", { text: "The limit" });
  piece("text_delta", { text: "now." }, 4);
  piece("text_delta", { text: " is there " }, 3);
  await log.getByText("The limit is there now.").waitFor();
  piece("tool_call_delta", { callId: "c9", toolName: "bash", argumentsDelta: '{"command":"cargo ' }, 5);
  await log.locator(".call-coming").getByText("bash").waitFor();
  await picture(page, "driven-answers");
  await accessible(page);
  const whole = conversation();
  const messages = [...whole.messages];
  messages.push({
    from: "agent",
    at: Date.now(),
    turn: "turn_3",
    text: "The limit is there now. I run the tests.",
    calls: [{ callId: "c9", name: "bash", arguments: { command: "cargo test" } }],
  });
  change(working("ExecutingTools"), { ...whole, messages, messagesLen: 5 });
  await log.getByText("I run the tests.").waitFor();
  expect(await log.getByText("The limit is there now.").count()).toBe(1);
  expect(await log.locator(".call-coming").count()).toBe(0);
  tell("agent:state_event", ran("c9", "bash", Date.now()));
  await log.locator("[data-call=c9][data-status=running]").waitFor();
  tell(
    "agent:state_event",
    ran("c9", "bash", Date.now(), undefined, { status: "failed", error: "the sandbox is gone" }),
  );
  await log.locator("[data-call=c9][data-status=failed]").waitFor();
  expect(troubles).toEqual([]);
});

test("earlier messages come when they are asked for, and what is read stays in its place", async () => {
  const tab = await shown({ ...asking(), ...ready() } as Card);
  const { page, between, change } = tab;
  const said = Array.from({ length: 120 }, (_, nth) => ({
    from: "operator",
    at: nth,
    text: `Message ${nth}`,
  }));
  let wanted = 50;
  const attached = () => ({ ...conversation(), messagesLen: 120, messages: said.slice(-wanted), notes: [] });
  between.json(/^\/api\/live\/sessions\/driven$/, (url) => {
    wanted = Number(url.searchParams.get("messages") ?? 50);
    return { ...detail({ ...asking(), ...ready() } as Card), attached: attached() };
  });
  change({});
  const log = page.getByRole("log", { name: "Conversation" });
  await log.getByText("Message 119").waitFor();
  const more = page.getByRole("button", { name: "70 earlier messages" });
  await log.evaluate((box) => box.scrollTo(0, 0));
  const place = log.getByText("Message 70");
  const was = (await place.boundingBox())!.y;
  await more.click();
  await log.getByText("Message 0", { exact: true }).waitFor({ state: "attached" });
  const moved = Math.abs((await place.boundingBox())!.y - was);
  // The button went.
  expect(moved).toBeLessThan(60);
});

test("what failed is tried again, as a whole and run by run", async () => {
  const failed = conversation();
  const error = {
    code: "tool_execution_failed",
    message: "the sandbox is gone",
    retryable: true,
    source: "tool",
  };
  const notes = [
    ...failed.notes,
    ran("c3", "edit_file", Date.now() - 2_000, Date.now() - 1_000, {
      status: "failed",
      error: error.message,
    }),
    { eventId: "x1", timestampMs: Date.now() - 900, sessionId: "driven", type: "session_error", ...error },
  ];
  const tab = await shown(
    driven("driven", {
      agentState: { ...card("x", "needs_you", "error").agentState, label: "A tool failed" },
      drive: { ...asking().drive!, state: "Error", lastError: error, retry: { kind: "tool", run: "run_c3" } },
      capabilities: { ...NOTHING, canRetry: true, canPrompt: true, canStop: true, canYolo: true },
    }),
  );
  tab.change({}, { ...failed, notes });
  await tab.page.getByText("Tool execution failed").waitFor();
  await picture(tab.page, "driven-failed");
  await tab.page.locator(".step-retry").getByRole("button", { name: "Retry" }).click();
  await tab.page.getByRole("button", { name: "Run what failed again" }).click();
  await expect
    .poll(() => told(tab))
    .toEqual([
      ["sessions/driven/tools/run_c3/retry", {}],
      ["sessions/driven/retry", {}],
    ]);
});

test("it is told, paused, resumed, interrupted and stopped from its page", async () => {
  const tab = await shown({ ...asking(), ...ready() } as Card);
  const { page, change } = tab;
  const box = page.getByLabel("Next prompt");
  await box.fill("One");
  await box.press("Shift+Enter");
  await box.pressSequentially("two");
  await box.press("Enter");
  await expect
    .poll(() => told(tab))
    .toEqual([["sessions/driven/input", { text: "One\ntwo", key: expect.any(String) }]]);
  await expect.poll(() => box.inputValue()).toBe("");
  change(working());
  await page.getByRole("button", { name: "Pause" }).click();
  // What is typed while it works waits.
  await box.fill("Later");
  await box.press("Enter");
  await page.getByRole("button", { name: "Interrupt" }).click();
  change({
    ...working("Paused"),
    agentState: { ...card("x", "needs_you", "paused").agentState, label: "Paused" },
    capabilities: { ...NOTHING, canResume: true, canStop: true, canYolo: true },
  });
  await page.getByRole("button", { name: "Resume" }).click();
  await page.getByRole("button", { name: "Stop", exact: true }).click();
  await page.getByRole("button", { name: "Yes, stop" }).click();
  await expect
    .poll(() => told(tab).slice(1))
    .toEqual([
      ["sessions/driven/pause", {}],
      ["sessions/driven/interrupt", {}],
      ["sessions/driven/resume", {}],
      ["sessions/driven/stop", {}],
    ]);
  expect(await box.inputValue()).toBe("Later");
  expect(tab.troubles).toEqual([]);
});

test("YOLO is switched in the head, asked about first, and a refusal is told", async () => {
  const tab = await shown(asking());
  const { page, between, change } = tab;
  const toggle = page.locator(".session-head").getByRole("switch");
  expect(await toggle.getAttribute("aria-checked")).toBe("false");
  between.take(/\/yolo$/, () => ({
    status: 403,
    value: { code: "YOLO_FORBIDDEN", message: "the project forbids to allow everything", retryable: false },
  }));
  await toggle.click();
  expect(told(tab)).toEqual([]);
  await page.getByRole("button", { name: "Yes, YOLO" }).click();
  await page.getByText("the project forbids to allow everything").waitFor();
  expect(told(tab)).toEqual([["sessions/driven/yolo", { on: true }]]);
  expect(await toggle.getAttribute("aria-checked")).toBe("false");
  change({ drive: { ...asking().drive!, preset: "yolo" } });
  await expect.poll(() => toggle.getAttribute("aria-checked")).toBe("true");
  expect(await page.locator(".policy.is-loud").textContent()).toContain("YOLO");
});

test.each([
  ["desk", { viewport: DESK }],
  ["phone", HAND],
])(
  "its card on the board says that it is driven, what failed, and what can be done (%s)",
  async (name, options) => {
    const error = {
      code: "streaming_failed",
      message: "the provider answers 529",
      retryable: true,
      source: "harness",
    };
    const tab = await shown(
      driven("driven", {
        drive: { ...asking().drive!, state: "Ready", lastError: error, retry: { kind: "llm" } },
        capabilities: { ...NOTHING, canRetry: true, canPause: true, canPrompt: true, canStop: true },
      }),
      options,
      "/",
    );
    const own = tab.page.locator("[data-session=driven]");
    expect(await own.locator(".driven").textContent()).toBe("driven");
    expect(await own.locator(".card-error").textContent()).toBe(error.message);
    expect(await tab.page.locator("[data-session=other] .driven").count()).toBe(0);
    await picture(tab.page, `driven-board-${name}`);
    await own.getByRole("button", { name: "Ask the model again" }).click();
    await own.getByRole("button", { name: "Pause" }).click();
    await expect
      .poll(() => told(tab))
      .toEqual([
        ["sessions/driven/retry", {}],
        ["sessions/driven/pause", {}],
      ]);
    await accessible(tab.page);
  },
);

const HARNESSES = {
  harnesses: [
    { harness: "native", possible: true, providers: ["anthropic", "local"] },
    { harness: "claude-code", possible: true },
    { harness: "codex", possible: false, why: "codex is not installed" },
    { harness: "gemini-cli", possible: true },
    { harness: "acp", possible: true, providers: ["duck", "goose"] },
  ],
};

test.each([
  ["desk", { viewport: DESK }],
  ["phone", HAND],
])("a session is begun from the dialog, and refusals stand where they belong (%s)", async (name, options) => {
  const tab = await shown(card("driven", "autonomous", "thinking"), options, "/");
  const { page, between } = tab;
  between.json(/^\/api\/harnesses$/, () => HARNESSES);
  let refusal: { status: number; value: unknown } | undefined;
  between.take(/^\/api\/sessions$/, () => refusal ?? { value: { sessionId: "driven" } });
  await page.getByRole("button", { name: "New session" }).click();
  const dialog = page.getByRole("dialog", { name: "New session" });
  await dialog.getByText("codex is not installed").waitFor();
  expect(await dialog.getByLabel("Codex").isDisabled()).toBe(true);
  await picture(page, `new-session-${name}`);
  // Nothing is wider than the screen: the dialog would be cut.
  expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBeLessThanOrEqual(0);
  const box = await dialog.boundingBox();
  expect(box!.x + box!.width).toBeLessThanOrEqual(page.viewportSize()!.width);
  await accessible(page);
  await dialog.getByRole("button", { name: "Begin" }).click();
  await dialog.getByText("Which folder shall it work in?").waitFor();
  refusal = {
    status: 400,
    value: { code: "no_workspace", message: "there is no such folder", retryable: false },
  };
  await dialog.getByLabel("Folder").fill("/home/ada/work/atlas");
  await dialog.getByLabel("Prompt").fill("Add a limit");
  await dialog.getByRole("button", { name: "Begin" }).click();
  await dialog.locator(".labelled", { hasText: "Folder" }).getByText("there is no such folder").waitFor();
  refusal = {
    status: 409,
    value: { code: "not_possible", message: "no key for anthropic", retryable: false },
  };
  await dialog.getByRole("button", { name: "Begin" }).click();
  await dialog.locator(".harness-choice").getByText("no key for anthropic").waitFor();
  refusal = undefined;
  await dialog.getByLabel("Without asking").selectOption("yolo");
  await dialog.getByRole("button", { name: "Begin" }).click();
  expect(between.told).toHaveLength(2);
  await dialog.getByRole("button", { name: "Yes, begin with YOLO" }).click();
  await page.waitForURL("**/sessions/driven");
  const wanted = { harness: "native", workspace: "/home/ada/work/atlas", prompt: "Add a limit" };
  expect(between.told.at(-1)?.body).toEqual({ ...wanted, preset: "yolo" });
  // The last choice is there again, but YOLO is not.
  await page.getByRole("button", { name: "New session" }).click();
  expect(await dialog.getByLabel("Folder").inputValue()).toBe("/home/ada/work/atlas");
  expect(await dialog.getByLabel("Without asking").inputValue()).toBe("careful");
  expect(await dialog.getByLabel("Prompt").inputValue()).toBe("");
  expect(tab.troubles).toEqual([]);
});

test("of several ACP agents one is chosen", async () => {
  const tab = await shown(card("driven", "autonomous", "thinking"), {}, "/");
  const { page, between } = tab;
  between.json(/^\/api\/harnesses$/, () => HARNESSES);
  between.take(/^\/api\/sessions$/, () => ({ value: { sessionId: "driven" } }));
  await page.getByRole("button", { name: "New session" }).click();
  const dialog = page.getByRole("dialog", { name: "New session" });
  await dialog.getByText("codex is not installed").waitFor();
  await dialog.getByLabel("Folder").fill("/home/ada/work/atlas");
  await dialog.getByRole("radio", { name: /ACP/ }).check();
  await dialog.getByRole("button", { name: "Begin" }).click();
  await dialog.getByText("Which of them?").waitFor();
  await picture(page, "new-session-acp");
  await accessible(page);
  await dialog.getByLabel("Which agent").selectOption("goose");
  await dialog.getByRole("button", { name: "Begin" }).click();
  await page.waitForURL("**/sessions/driven");
  expect(between.told.at(-1)?.body).toMatchObject({ harness: "acp", provider: "goose" });
});

test("c begins a session from anywhere, n where nothing waits for an answer", async () => {
  const tab = await shown(asking(), {}, "/");
  const { page } = tab;
  const dialog = page.getByRole("dialog", { name: "New session" });
  await page.keyboard.press("n");
  await dialog.waitFor();
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  await page.keyboard.press("a");
  await page.keyboard.press("c");
  await dialog.waitFor();
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  await isRead(page.locator("[data-session]"));
  await page.keyboard.press("n");
  await expect.poll(() => told(tab)).toHaveLength(1);
  expect(await dialog.count()).toBe(0);
});
