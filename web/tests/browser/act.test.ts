/** Acting on sessions, in a real browser: what is sent, what is shown, what is never lost. */

import type { BrowserContextOptions, Locator, Page } from "playwright-core";
import { expect, onTestFinished, test } from "vitest";

import type { AnswerView, Card, SessionList } from "../../src/wire";
import type { Between } from "./between";
import { accessible, PHONE, picture, silence } from "./browser";
import { ALL, answerable, card, detail, list } from "./sample";
import { HAND, isRead, readThrough, type Shown, stage } from "./stage";

const enter = stage();

const BY = { who: "ada", device: "laptop" };

interface Acted extends Shown {
  /** The server's next word on a card. */
  say: (card: Card) => void;
}

/** The page over a board that the test made, and a server that takes everything. */
async function shown(board: SessionList, options: BrowserContextOptions = {}, path = "/"): Promise<Acted> {
  const set = (between: Between) => {
    between.board(board);
    between.take(/^\/api\/(requests|sessions)\//, () => ({
      value: { decisionId: "dec_1", state: "delivered" },
    }));
  };
  const there = await enter({ set, options, path, until: "[data-session], .blank" });
  return { ...there, say: (each) => there.tell("session_changed", each) };
}

const of = (board: SessionList, id: string) => board.sessions.find((each) => each.sessionId === id)!;

const press = (place: Locator, name: string) => place.getByRole("button", { name, exact: true }).click();

/** What was told without the keys that make it happen once. */
const told = (between: Between) =>
  between.told.map(({ path, body }) => {
    const { key, ...rest } = body as { key?: string };
    if (key !== undefined) expect(key).toMatch(/^[0-9a-f-]{32,36}$/);
    return [path.replace(/^\/api\//, ""), rest];
  });

const answered = (id: string, state: AnswerView["state"], why?: string): AnswerView => ({
  decision: { type: "allow" },
  state,
  by: BY,
  at: Date.now() + id.length,
  ...(why === undefined ? {} : { why }),
});

const withAnswer = (each: Card, answer: AnswerView): Card => ({
  ...each,
  requests: each.requests.map((request) => ({ ...request, answer })),
});

const wentOn = (each: Card): Card => ({
  ...each,
  requests: [],
  agentState: { ...each.agentState, group: "autonomous", state: "thinking", label: "Thinking" },
});

/** Which card has the focus. */
const selects = (page: Page, id: string) =>
  page.waitForFunction(
    (wanted) => document.activeElement?.closest("[data-session]")?.getAttribute("data-session") === wanted,
    id,
  );

test("each answer to a permission is sent as it is pressed, once", async () => {
  const answers: readonly (readonly [(place: Locator) => Promise<void>, unknown])[] = [
    [(place) => press(place, "Allow"), { type: "allow" }],
    [(place) => press(place, "Deny"), { type: "deny" }],
    [
      async (place) => {
        await press(place, "Always");
        expect(await place.locator(".kept li").allInnerTexts()).toEqual([
          "Bash(cargo test:*) in this project",
          "Bash(docker compose:*)",
        ]);
        await press(place, "Always allow this");
      },
      { type: "allow", scope: "always" },
    ],
    [
      async (place) => {
        await press(place, "Always");
        await press(place, "Allow for this session");
      },
      { type: "allow", scope: "session" },
    ],
    [
      async (place) => {
        await press(place, "Deny with message");
        await place.page().keyboard.type("use podman");
        await press(place, "Deny with this message");
      },
      { type: "deny", message: "use podman" },
    ],
    [
      async (place) => {
        await press(place, "Edit and allow");
        await place.getByLabel("Command", { exact: true }).fill("cargo test");
        await press(place, "Allow this command");
      },
      { type: "allow", input: { command: "cargo test", description: "Run the tests" } },
    ],
  ];
  for (const [answer, decision] of answers) {
    const { at, between, troubles } = await shown(answerable());
    const place = at("command");
    await answer(place);
    await place.getByText("Sent; waiting for the agent to go on").waitFor();
    expect(told(between)).toEqual([["requests/req_r1/decision", { decision }]]);
    expect(await place.locator(".acts .act:not([aria-disabled])").count()).toBe(0);
    expect(troubles).toEqual([]);
  }
});

test("a question is answered by its option, by text, or as one form", async () => {
  const board = answerable();
  const question = of(board, "question");
  const form: Card = {
    ...question,
    sessionId: "form",
    title: "Session form",
    requests: [
      {
        ...question.requests[0]!,
        key: "req_form",
        input: {
          questions: [
            { id: "db", question: "Which database?", options: [{ label: "SQLite" }, { label: "Postgres" }] },
            { question: "Which parts?", multiSelect: true, options: [{ label: "API" }, { label: "Page" }] },
            { question: "What name?" },
          ],
        },
      },
    ],
  };
  const { page, at, between, troubles } = await shown(list([question, form]));
  await at("question").getByRole("button", { name: "SQLite" }).click();
  await at("question").getByText("Sent; waiting").waitFor();
  const send = at("form").getByRole("button", { name: "Send", exact: true }).first();
  expect(await send.getAttribute("aria-disabled")).toBe("true");
  await at("form").getByLabel("Postgres").check();
  await at("form").getByLabel("Page").check();
  await at("form").getByLabel("API").check();
  await at("form").getByRole("group", { name: "Which parts?" }).getByLabel("Another answer").fill("Docs");
  await at("form").getByRole("textbox", { name: "Answer", exact: true }).fill("atlas");
  await accessible(page);
  await picture(page, "act-question");
  await send.click();
  await at("form").getByText("Sent; waiting").waitFor();
  expect(told(between)).toEqual([
    [
      "requests/req_r3/decision",
      { decision: { type: "answer", answers: [{ question: "Which database?", values: ["SQLite"] }] } },
    ],
    [
      "requests/req_form/decision",
      {
        decision: {
          type: "answer",
          answers: [
            { question: "db", values: ["Postgres"] },
            { question: "Which parts?", values: ["API", "Page", "Docs"] },
            { question: "What name?", values: ["atlas"] },
          ],
        },
      },
    ],
  ]);
  expect(troubles).toEqual([]);
});

test("a plan is approved with a mode, or sent back with what is wrong", async () => {
  const approving = await shown(answerable());
  await readThrough(approving.at("plan"));
  await approving.at("plan").getByLabel("Mode after approval").selectOption("acceptEdits");
  await press(approving.at("plan"), "Approve");
  await approving.at("plan").getByText("Sent; waiting").waitFor();
  expect(told(approving.between)).toEqual([
    ["requests/req_r4/decision", { decision: { type: "approve_plan", mode: "acceptEdits" } }],
  ]);
  const rejecting = await shown(answerable());
  await press(rejecting.at("plan"), "Reject with feedback");
  await rejecting.page.keyboard.type("smaller steps");
  await rejecting.page.keyboard.press("Control+Enter");
  await rejecting.at("plan").getByText("Sent; waiting").waitFor();
  expect(told(rejecting.between)).toEqual([
    ["requests/req_r4/decision", { decision: { type: "reject_plan", feedback: "smaller steps" } }],
  ]);
});

test("a session is prompted, interrupted, stopped, found, and let go", async () => {
  const idle = card("idle", "needs_you", "idle", { capabilities: ALL });
  const { page, at, between, say, troubles } = await shown(list([idle]), {
    permissions: ["clipboard-read", "clipboard-write"],
  });
  const place = at("idle");
  await place.getByLabel("Next prompt").fill("now the docs");
  await press(place, "Send");
  await page.waitForFunction(
    () => document.querySelector<HTMLTextAreaElement>(".prompt-box textarea")?.value === "",
  );
  await press(place, "Interrupt");
  await press(place, "More");
  await press(place, "Focus");
  await press(place, "Stop");
  await place.getByRole("group", { name: "Stop it?" }).waitFor();
  expect(await page.evaluate(() => document.activeElement?.textContent)).toBe("No");
  await picture(page, "act-session");
  await accessible(page);
  expect(between.told.some(({ path }) => path.endsWith("/stop"))).toBe(false);
  await press(place, "No");
  await press(place, "Stop");
  // Nobody says anything: that is no.
  await silence(page);
  await place.getByRole("group", { name: "Stop it?" }).waitFor({ state: "detached" });
  expect(between.told.some(({ path }) => path.endsWith("/stop"))).toBe(false);
  await press(place, "Stop");
  await press(place, "Yes, stop");
  const yolo = place.getByRole("switch");
  await yolo.click();
  await press(place, "Yes, YOLO");
  await page.getByText("YOLO switched").waitFor();
  // On is what the server says is on.
  expect(await yolo.getAttribute("aria-checked")).toBe("false");
  say({ ...idle, mode: "bypassPermissions" });
  await place.getByRole("switch", { name: "YOLO on", checked: true }).waitFor();
  await press(place, "Copy resume command");
  await page.getByText("Copied").waitFor();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe("claude --resume vendor-idle");
  await press(place, "Dismiss");
  await page.getByText("Dismissed: ").waitFor();
  expect(told(between)).toEqual([
    ["sessions/idle/input", { text: "now the docs" }],
    ["sessions/idle/interrupt", {}],
    ["sessions/idle/focus", {}],
    ["sessions/idle/stop", {}],
    ["sessions/idle/yolo", { on: true }],
    ["sessions/idle/dismiss", {}],
  ]);
  expect(troubles).toEqual([]);
});

test("what cannot be done has no button, and says why", async () => {
  const board = answerable();
  const none = Object.fromEntries(Object.keys(ALL).map((name) => [name, false])) as unknown as typeof ALL;
  const why = { canStop: "It was not started here." };
  const mute = board.sessions.map((each): Card => ({
    ...each,
    capabilities: { ...none, why },
    requests: each.requests.map(({ way: _, ...rest }) => ({
      ...rest,
      whyNot: "Answer it in its terminal: tmux work:2.1",
    })),
  }));
  const { page, at, between } = await shown(list(mute));
  expect(await at("command").locator(".why-not").innerText()).toBe(
    "Answer it in its terminal: tmux work:2.1",
  );
  const names = await page.locator("article button").allInnerTexts();
  expect([...new Set(names.map((name) => name.trim()))]).toEqual(["Dismiss"]);
  await page.keyboard.press("j");
  await selects(page, "change");
  for (const key of ["y", "n", "1", "r"]) await page.keyboard.press(key);
  between.json(/^\/api\/live\/sessions\/command$/, () => detail(mute[0]!));
  await page.locator('[data-session="command"] .card-title a').click();
  await page.getByText("Not possible from here").waitFor();
  await page.getByText("It was not started here.").waitFor();
  expect(between.told).toEqual([]);
});

test("keys answer the selected card, and never twice", async () => {
  const board = answerable();
  const { page, at, between, say, troubles } = await shown(board);
  // Nothing is selected: nothing is answered.
  await page.keyboard.press("y");
  await page.keyboard.press("j");
  await selects(page, "change");
  await isRead(at("change"));
  await page.keyboard.press("y");
  await page.keyboard.press("y");
  await page.keyboard.press("n");
  await at("change").getByText("Sent; waiting").waitFor();
  await page.keyboard.press("y");
  expect(told(between)).toEqual([["requests/req_r2/decision", { decision: { type: "allow" } }]]);
  // It goes on: the next that waits has the focus, and a late press is not meant for it.
  // Pressed in the page, in the frame in which the focus moves: a busy machine would press too late.
  say(wentOn(of(board, "change")));
  await page.waitForFunction(() => {
    const place = document.activeElement?.closest<HTMLElement>("[data-session]");
    if (place?.dataset["session"] !== "command") return false;
    place.dispatchEvent(new KeyboardEvent("keydown", { key: "y", bubbles: true }));
    return true;
  });
  expect(between.told).toHaveLength(1);
  await page.keyboard.press("a");
  await selects(page, "question");
  await page.waitForFunction(
    (from) => performance.now() - from > 500,
    await page.evaluate(() => performance.now()),
  );
  await page.keyboard.press("2");
  await at("question").getByText("Sent; waiting").waitFor();
  await page.keyboard.press("a");
  await selects(page, "plan");
  await page.keyboard.press("n");
  await at("plan").getByText("Sent; waiting").waitFor();
  await page.keyboard.press("a");
  await selects(page, "command");
  await page.keyboard.press("r");
  await page.waitForFunction(() => document.activeElement?.getAttribute("aria-label") === "Next prompt");
  await page.keyboard.type("yn1");
  await page.keyboard.press("Control+Enter");
  await page.getByText("Sent to Session command").waitFor();
  expect(told(between).slice(1)).toEqual([
    [
      "requests/req_r3/decision",
      { decision: { type: "answer", answers: [{ question: "Which database?", values: ["Postgres"] }] } },
    ],
    ["requests/req_r4/decision", { decision: { type: "reject_plan" } }],
    ["sessions/command/input", { text: "yn1" }],
  ]);
  await page.keyboard.press("Escape");
  await page.keyboard.press("Control+k");
  await page.getByRole("option", { name: "Allow: Session command" }).waitFor();
  await picture(page, "act-palette");
  await page.keyboard.press("Enter");
  await at("command").getByText("Sent; waiting").waitFor();
  await page.keyboard.press("?");
  await page.getByText("Allow or deny, approve or reject").waitFor();
  expect(troubles).toEqual([]);
});

test("each state of an answer is told as it is", async () => {
  const board = answerable();
  const { page, at, between, say } = await shown(board);
  const place = at("command");
  let release = () => {};
  between.answer(/decision$/, (_, response) => {
    release = () => {
      response.writeHead(503, { "content-type": "application/json" });
      response.end(JSON.stringify({ code: "delivery_failed", message: "the hook is gone", retryable: true }));
    };
  });
  await press(place, "Allow");
  await place.getByText("Sending").waitFor();
  expect(await place.locator(".acts .act:not([aria-disabled])").count()).toBe(0);
  await picture(page, "act-sending");
  release();
  await place.getByText("Not delivered: the hook is gone").waitFor();
  // What nobody can tell of is not told as failed.
  between.take(/decision$/, () => ({
    status: 503,
    value: { code: "delivery_unclear", message: "nobody can say whether it arrived", retryable: false },
  }));
  await press(place, "Allow");
  await place.getByText("It may not have arrived: nobody can say whether it arrived").waitFor();
  expect(await place.locator(".acts .act[aria-disabled]").count()).toBe(0);
  await accessible(page);
  // The board's own word, and a failure of it.
  say(withAnswer(of(board, "command"), answered("a", "sending")));
  await place.getByText("Sending").waitFor();
  say(withAnswer(of(board, "command"), answered("ab", "delivered")));
  await place.getByText("Sent; waiting for the agent to go on").waitFor();
  say(withAnswer(of(board, "command"), answered("abc", "failed", "the socket closed")));
  await place.getByText("Not delivered: the socket closed").waitFor();
  // Somebody was first.
  between.take(/decision$/, () => ({
    status: 409,
    value: {
      code: "already_answered",
      message: "it was answered",
      retryable: false,
      first: { decision: { type: "deny" }, by: BY, at: 1, state: "delivered" },
    },
  }));
  await press(place, "Allow");
  await place.getByText("Answered first by ada on laptop: denied").waitFor();
  await picture(page, "act-states");
  await accessible(page);
});

test("an answer that nobody heard goes out again under the same key", async () => {
  const { at, between } = await shown(answerable());
  let away = true;
  between.take(/decision$/, () => (away ? "cut" : { value: { decisionId: "dec_1", state: "delivered" } }));
  await press(at("command"), "Allow");
  await at("command").getByText("It may not have arrived: the daemon does not answer").waitFor();
  away = false;
  await press(at("command"), "Allow");
  await at("command").getByText("Sent; waiting").waitFor();
  // The browser itself may have tried more than once: that is what the key is for.
  const keys = between.told.map(({ body }) => (body as { key: string }).key);
  expect(keys.length).toBeGreaterThanOrEqual(2);
  expect(new Set(keys).size).toBe(1);
});

test("a prompt that was refused stays in its box", async () => {
  const idle = card("idle", "needs_you", "idle", { capabilities: ALL });
  const { at, between, page } = await shown(list([idle]));
  between.take(/input$/, () => ({
    status: 409,
    value: { code: "not_possible", message: "it is in the middle of a turn", retryable: true },
  }));
  await at("idle").getByLabel("Next prompt").fill("now the docs");
  await press(at("idle"), "Send");
  await at("idle").getByText("Not delivered: Prompt: it is in the middle of a turn").waitFor();
  expect(await at("idle").getByLabel("Next prompt").inputValue()).toBe("now the docs");
  await page.reload();
  await at("idle").waitFor();
  expect(await at("idle").getByLabel("Next prompt").inputValue()).toBe("now the docs");
});

test("answered in the terminal, the text that was typed is not lost", async () => {
  const board = answerable();
  const { page, at, say } = await shown(board);
  await press(at("command"), "Deny with message");
  await page.keyboard.type("use podman");
  say(wentOn(of(board, "command")));
  await at("command").getByText("Answered in the terminal. Your text was not sent:").waitFor();
  expect(await at("command").locator(".leftovers pre").innerText()).toBe("use podman");
  // It stays in its place while the text is there; the groups count it where it is.
  expect(await page.locator("#group-needs_you").innerText()).toBe("Needs You 3");
  await picture(page, "act-leftover");
  await accessible(page);
  await press(at("command"), "Use as next prompt");
  expect(await at("command").getByLabel("Next prompt").inputValue()).toBe("use podman");
});

for (const [name, options] of [
  ["a desk", {}],
  ["a phone", HAND],
] as const) {
  test(`what is typed on ${name} stays while the board changes twenty times a second`, async () => {
    const many = Array.from({ length: 60 }, (_, index) =>
      card(`s${index}`, "needs_you", "idle", { capabilities: ALL }),
    );
    const { page, at, say, between, troubles } = await shown(list(many), options);
    // Somewhere in the middle: at the very top there is nothing to scroll by.
    const ids = await page
      .locator("article")
      .evaluateAll((all) => all.map((each) => each.dataset["session"]));
    const place = at(ids[3]!);
    const mine = many.find(({ sessionId }) => sessionId === ids[3])!;
    await page
      .locator(".strip")
      .first()
      .evaluate((strip) => (strip.scrollTop = 200));
    await place.getByLabel("Next prompt").click();
    await page.evaluate(() => {
      const field = document.activeElement!;
      const seen = { lost: 0, tops: [] as number[] };
      (globalThis as unknown as { seen: typeof seen }).seen = seen;
      field.addEventListener("blur", () => (seen.lost += 1));
      const look = () => {
        seen.tops.push(Math.round(field.getBoundingClientRect().top));
        requestAnimationFrame(look);
      };
      look();
    });
    const first = many.find(({ sessionId }) => sessionId === ids[0])!;
    const text = "the quick brown fox jumps over the lazy dog. ".repeat(3).trim();
    let turn = 0;
    const updates = setInterval(() => {
      turn += 1;
      const other = many[21 + (turn % 30)]!;
      // Others move to the top, and the one that is typed in changes and goes to work.
      const since = other.agentState.since - turn * 1_000;
      say({ ...other, agentState: { ...other.agentState, since, label: `Turn ${turn}` } });
      say(turn % 2 ? wentOn(mine) : mine);
      if (turn % 5 === 0) say({ ...first, requests: answerable().sessions[turn % 2]!.requests });
    }, 50);
    onTestFinished(() => clearInterval(updates));
    await page.keyboard.type(text, { delay: 25 });
    expect(await place.getByLabel("Next prompt").inputValue()).toBe(text);
    // Sent, it goes where it belongs; until then it does not move.
    const tops = await page.evaluate(() => (globalThis as unknown as { seen: { tops: number[] } }).seen.tops);
    expect(Math.max(...tops) - Math.min(...tops)).toBeLessThanOrEqual(4);
    await press(place, "Send");
    clearInterval(updates);
    await page.getByText(`Sent to ${mine.title}`).waitFor();
    expect(turn).toBeGreaterThan(20);
    expect(told(between)).toEqual([[`sessions/${mine.sessionId}/input`, { text }]]);
    expect(troubles).toEqual([]);
  });
}

test("a card that grows lies over no other, not for a moment", async () => {
  const { page } = await shown(answerable());
  await page.locator("[data-session=plan]").waitFor();
  // Looked at before the page has measured anything again.
  const overlap = await page.evaluate(async () => {
    const card = document.querySelector<HTMLElement>("[data-session=command]")!;
    const all = [...document.querySelectorAll<HTMLElement>("[data-group=needs_you] article")];
    const next = all[all.indexOf(card) + 1]!;
    const before = card.getBoundingClientRect().height;
    [...card.querySelectorAll("button")].find((each) => each.textContent === "Always")!.click();
    await Promise.resolve();
    const { height, bottom } = card.getBoundingClientRect();
    return { grown: height > before, over: bottom - next.getBoundingClientRect().top > 0 };
  });
  expect(overlap).toEqual({ grown: true, over: false });
});

test("a card with something typed stays in the document, however far away", async () => {
  const many = Array.from({ length: 300 }, (_, index) =>
    card(`s${index}`, "needs_you", "idle", { capabilities: ALL }),
  );
  const { page, at } = await shown(list(many));
  await at("s0").getByLabel("Next prompt").fill("half a thought");
  await at("s1")
    .locator(".card-title")
    .click({ position: { x: 400, y: 5 } });
  await page.locator('.column[data-group="needs_you"] .strip').evaluate((strip) => (strip.scrollTop = 1e6));
  await at("s99").waitFor();
  expect(await at("s0").getByLabel("Next prompt").inputValue()).toBe("half a thought");
  expect(await page.locator("article").count()).toBeLessThan(40);
});

test("on a phone the buttons fit a thumb and stay in reach", async () => {
  const board = answerable();
  const tall = of(board, "change");
  const content = Array.from({ length: 60 }, (_, index) => `line ${index}`).join("\n");
  const long: Card = {
    ...tall,
    requests: [{ ...tall.requests[0]!, input: { file_path: "/x", content } }],
  };
  const sessions = board.sessions.map((each) => (each.sessionId === "change" ? long : each));
  const { page, at, between, troubles } = await shown(list(sessions), HAND);
  await at("change")
    .getByRole("button", { name: /more lines/ })
    .tap();
  const allow = at("change").getByRole("button", { name: "Allow", exact: true });
  const box = (await allow.boundingBox())!;
  expect(box.y + box.height).toBeLessThanOrEqual(PHONE.height);
  await picture(page, "act-phone-tall");
  for (const button of await page.locator("article .act, article .option").all()) {
    const size = await button.boundingBox();
    if (size) expect([await button.innerText(), size.height >= 44]).toEqual([await button.innerText(), true]);
  }
  expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
  // The end of it was not on the screen: it cannot be allowed yet.
  expect(await allow.getAttribute("aria-disabled")).toBe("true");
  await readThrough(at("change"));
  await allow.tap();
  await at("change").getByText("Sent; waiting").waitFor();
  await at("question").scrollIntoViewIfNeeded();
  await picture(page, "act-phone-question");
  await accessible(page);
  expect(told(between)).toEqual([["requests/req_r2/decision", { decision: { type: "allow" } }]]);
  expect(troubles).toEqual([]);
});

test("the list has the same actions below its line", async () => {
  const board = answerable();
  const { page, at, between, troubles } = await shown(board);
  await page.getByRole("button", { name: "Show as list" }).click();
  await at("command").getByRole("button", { name: "Answer", exact: true }).click();
  await at("command").locator(".command").waitFor();
  await accessible(page);
  await picture(page, "act-list");
  await press(at("command"), "Allow");
  await at("command").getByText("Sent; waiting").waitFor();
  await page.setViewportSize(PHONE);
  await picture(page, "act-list-phone");
  expect(told(between)).toEqual([["requests/req_r1/decision", { decision: { type: "allow" } }]]);
  expect(troubles).toEqual([]);
});

for (const [name, options] of [
  ["desk", {}],
  ["phone", HAND],
] as const) {
  test(`the session's page has the same actions on a ${name}`, async () => {
    const board = answerable();
    const command = of(board, "command");
    const { page, at, between, say, troubles } = await shown(board, options, "/sessions/command");
    between.json(/^\/api\/live\/sessions\/command$/, () => detail(command));
    await at("command").getByRole("button", { name: "Allow", exact: true }).waitFor();
    await picture(page, `act-session-${name}`);
    await accessible(page);
    await isRead(at("command"));
    await page.keyboard.press("y");
    await at("command").getByText("Sent; waiting").waitFor();
    await press(at("command"), "Interrupt");
    await page.getByText("Interrupt sent").waitFor();
    say(wentOn(command));
    await at("command").getByText("Thinking").first().waitFor();
    expect(told(between)).toEqual([
      ["requests/req_r1/decision", { decision: { type: "allow" } }],
      ["sessions/command/interrupt", {}],
    ]);
    expect(troubles).toEqual([]);
  });
}
