/** Sessions that somebody else started, answered on their cards: real daemon, real waiting hooks. */

import type { Browser, Locator, Page } from "playwright-core";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";

import { Between } from "./between";
import { accessible, DESK, launch, open, PHONE, picture } from "./browser";
import { Daemon } from "./daemon";

let browser: Browser;

beforeAll(async () => {
  browser = await launch();
});

afterAll(() => browser?.close());

interface Stage {
  daemon: Daemon;
  page: Page;
  /** The card of what waits. */
  card: Locator;
  /** Until it waits for the operator. A phone shows the tab that was chosen, so that one is. */
  waits: () => Promise<void>;
  /** A mouse on the desk, a thumb on the phone. */
  press: (name: string) => Promise<void>;
}

const SIZES = [
  ["desk", { viewport: DESK }],
  ["phone", { viewport: PHONE, isMobile: true, hasTouch: true }],
] as const;

type Options = (typeof SIZES)[number][1];

async function stage(options: Options): Promise<Stage> {
  const daemon = await Daemon.serve();
  onTestFinished(() => daemon[Symbol.asyncDispose]());
  const between = await Between.open(daemon.url, daemon.token("operate"));
  onTestFinished(() => between[Symbol.asyncDispose]());
  const tab = await open(browser, between.url, options);
  onTestFinished(async () => {
    expect(tab.troubles).toEqual([]);
    await tab[Symbol.asyncDispose]();
  });
  const { page } = tab;
  const card = page.locator('article[data-group="needs_you"]');
  const waits = async () => {
    if ("hasTouch" in options) await page.getByRole("tab", { name: "Needs You (1)" }).tap();
    await card.waitFor();
  };
  const press = async (name: string) => {
    const button = card.getByRole("button", { name, exact: true });
    await ("hasTouch" in options ? button.tap() : button.click());
  };
  return { daemon, page, card, waits, press };
}

/** What the hook told its agent. */
async function decided(said: Promise<string>): Promise<Record<string, unknown>> {
  const { hookSpecificOutput: told } = JSON.parse(await said) as {
    hookSpecificOutput: { decision: Record<string, unknown> };
  };
  return told.decision;
}

const SENT = "Sent; waiting for the agent to go on";

test.each(SIZES)("a permission is allowed, another denied with a message (%s)", async (name, options) => {
  const { daemon, page, card, waits, press } = await stage(options);
  const first = await daemon.asks("one", "cargo test");
  await waits();
  await card.getByText("cargo test").waitFor();
  await picture(page, `observed-asks-${name}`);
  await press("Allow");
  expect(await decided(first.said)).toMatchObject({ behavior: "allow" });
  await card.getByText(SENT).waitFor();
  await daemon.goesOn("one", "cargo test");
  await card.waitFor({ state: "detached" });

  const second = await daemon.asks("two", "rm -rf build");
  await waits();
  await press("Deny with message");
  await card.getByLabel("Why it is denied").fill("Keep the cache");
  await press("Deny with this message");
  expect(await decided(second.said)).toMatchObject({ behavior: "deny", message: "Keep the cache" });
  expect(daemon.decisions().filter((each) => each === "given")).toHaveLength(2);
});

test.each(SIZES)("a rule that its client suggests is kept (%s)", async (_, options) => {
  const { daemon, card, waits, press } = await stage(options);
  const rule = {
    type: "addRules",
    rules: [{ toolName: "Bash", ruleContent: "cargo test:*" }],
    behavior: "allow",
    destination: "localSettings",
  };
  const suggesting = (session: string) =>
    daemon.asksFor(session, "Bash", { command: "cargo test" }, { permission_suggestions: [rule] });
  const kept = await suggesting("one");
  await waits();
  await press("Always");
  await card.getByText("Bash(cargo test:*) in this project, for you").waitFor();
  await press("Always allow this");
  expect(await decided(kept.said)).toMatchObject({ behavior: "allow", updatedPermissions: [rule] });
  await daemon.goesOn("one", "cargo test");
  await card.waitFor({ state: "detached" });
  const forNow = await suggesting("two");
  await waits();
  await press("Always");
  await press("Allow for this session");
  const session = { ...rule, destination: "session" };
  expect(await decided(forNow.said)).toMatchObject({ behavior: "allow", updatedPermissions: [session] });
});

const QUESTION = {
  questions: [
    {
      question: "Which database?",
      header: "Database",
      options: [{ label: "SQLite", description: "a file" }, { label: "Postgres" }],
      multiSelect: false,
    },
  ],
};

test.each(SIZES)("a question is answered by its option, another in words (%s)", async (name, options) => {
  const { daemon, page, card, waits, press } = await stage(options);
  const chosen = await daemon.asksFor("one", "AskUserQuestion", QUESTION);
  await waits();
  const option = card.getByRole("button", { name: /^SQLite/ });
  await option.waitFor();
  await picture(page, `observed-question-${name}`);
  await accessible(page);
  await ("hasTouch" in options ? option.tap() : option.click());
  const answers = (text: string) => ({ updatedInput: { answers: { "Which database?": text } } });
  expect(await decided(chosen.said)).toMatchObject(answers("SQLite"));
  await daemon.hasUsed("one", "AskUserQuestion", QUESTION);
  await card.waitFor({ state: "detached" });

  const typed = await daemon.asksFor("two", "AskUserQuestion", QUESTION);
  await waits();
  await card.getByRole("textbox", { name: "Another answer" }).fill("None: keep it in memory");
  await press("Send");
  expect(await decided(typed.said)).toMatchObject(answers("None: keep it in memory"));
});

test.each(SIZES)("a plan is read and approved, with the mode that follows (%s)", async (name, options) => {
  const { daemon, page, card, waits, press } = await stage(options);
  const plan = { plan: "# Split it\n\n1. Add tests\n2. **Ship**\n" };
  const agent = await daemon.asksFor("one", "ExitPlanMode", plan);
  await waits();
  await card.getByRole("region", { name: "Plan" }).getByText("Add tests").waitFor();
  await picture(page, `observed-plan-${name}`);
  await card.getByLabel("Mode after approval").selectOption("acceptEdits");
  await press("Approve");
  expect(await decided(agent.said)).toMatchObject({
    behavior: "allow",
    updatedPermissions: [{ type: "setMode", mode: "acceptEdits", destination: "session" }],
  });
  await card.getByText(SENT).waitFor();
  await daemon.hasUsed("one", "ExitPlanMode", {});
  await card.waitFor({ state: "detached" });
});

test.each(SIZES)("YOLO, asked about first, answers what waits (%s)", async (_, options) => {
  const { daemon, card, waits, press } = await stage(options);
  const agent = await daemon.asks("one", "cargo test");
  await waits();
  await press("More");
  const toggle = card.getByRole("switch", { name: "YOLO off" });
  await ("hasTouch" in options ? toggle.tap() : toggle.click());
  await press("Yes, YOLO");
  expect(await decided(agent.said)).toMatchObject({ behavior: "allow" });
  // Not by hand: its preset has said yes.
  expect(daemon.ask(["audit", "--json"])).toContain('"rule"');
});
