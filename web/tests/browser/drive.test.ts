/** A session begun, followed, answered, held and let go from the page: real daemon, real tools, a scripted model. */

import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";

import { Between } from "./between";
import { accessible, DESK, launch, open, PHONE, picture } from "./browser";
import { Daemon } from "./daemon";
import { type Scripted, ScriptedModel } from "./scripted_model";

let browser: Browser;

beforeAll(async () => {
  browser = await launch();
});

afterAll(async () => {
  await browser?.close();
});

interface Stage {
  page: Page;
  model: ScriptedModel;
  /** The path of a file in the workspace. */
  file: (name: string) => string;
  troubles: string[];
  workspace: string;
  /** Another tab of the same page. */
  another: () => Promise<Page>;
}

async function stage(script: (told: string) => Scripted, options = {}): Promise<Stage> {
  const model = await ScriptedModel.listen(({ messages }) =>
    script(JSON.stringify(messages.at(-1)?.content)),
  );
  onTestFinished(() => model[Symbol.asyncDispose]());
  const workspace = mkdtempSync(join(tmpdir(), "qd-drive-"));
  onTestFinished(() => rmSync(workspace, { recursive: true, force: true }));
  writeFileSync(join(workspace, "notes.md"), "# Notes\n");
  const config = `[model.scripted]\nprovider = "anthropic"\nmodel = "scripted"\nbase_url = "${model.url}"\n`;
  const daemon = await Daemon.serve({ "../config/quarterdeck/config.toml": config });
  onTestFinished(() => daemon[Symbol.asyncDispose]());
  const between = await Between.open(daemon.url, daemon.token("operate"));
  onTestFinished(() => between[Symbol.asyncDispose]());
  const tab = await open(browser, between.url, options);
  onTestFinished(() => tab[Symbol.asyncDispose]());
  const another = async () => {
    const page = await tab.page.context().newPage();
    await page.goto(between.url);
    return page;
  };
  const file = (name: string) => join(workspace, name);
  return { page: tab.page, troubles: tab.troubles, model, workspace, file, another };
}

async function begin({ page, workspace }: Stage, prompt: string): Promise<void> {
  await page.getByRole("button", { name: "New session" }).click();
  const dialog = page.getByRole("dialog", { name: "New session" });
  await dialog.getByLabel("Native").check();
  await dialog.getByLabel("Folder").fill(workspace);
  await dialog.getByLabel("Prompt").fill(prompt);
  await dialog.getByRole("button", { name: "Begin" }).click();
  await page.waitForURL("**/sessions/sess_*");
}

const conversationOf = (page: Page) => page.getByRole("log", { name: "Conversation" });

async function prompt(page: Page, text: string): Promise<void> {
  await page.getByLabel("Next prompt").fill(text);
  await page.getByRole("button", { name: "Send" }).click();
}

const write = (path: string): Scripted => ({
  text: `I write ${path}.`,
  calls: [{ name: "write_file", input: { path, content: `This is ${path}.\n` } }],
});

/** Writes the file that it is told to, and says what came of it. */
function scribe(told: string): Scripted {
  const wanted = /write (\w+\.txt)/.exec(told)?.[1];
  if (wanted !== undefined) return write(wanted);
  return { text: told.includes("rejected") ? "Then I leave it." : "It is written." };
}

test.each([
  ["desk", { viewport: DESK }],
  ["phone", { viewport: PHONE, isMobile: true, hasTouch: true }],
])("a tool is allowed, another denied, and YOLO asks no more (%s)", async (name, options) => {
  const at = await stage(scribe, options);
  const { page, model, file } = at;
  const log = conversationOf(page);
  const action = page.getByRole("region", { name: "Action required" });
  await begin(at, "Please write one.txt");
  await action.getByText("This is one.txt.").waitFor();
  expect(existsSync(file("one.txt"))).toBe(false);
  await picture(page, `drive-asks-${name}`);
  await action.getByRole("button", { name: "Allow" }).click();
  await log.getByText("It is written.").waitFor();
  expect(readFileSync(file("one.txt"), "utf8")).toBe("This is one.txt.\n");
  await log.locator(".step-card[data-status=succeeded] .tool-brief", { hasText: "one.txt" }).waitFor();

  await prompt(page, "Now write two.txt");
  await action.getByRole("button", { name: "Deny with message" }).click();
  await action.getByLabel("Why it is denied").fill("One is enough");
  await action.getByRole("button", { name: "Deny with this message" }).click();
  await log.getByText("Then I leave it.").waitFor();
  expect(model.lastTold).toContain("One is enough");
  // It was sent: nothing of it is left over.
  await expect.poll(() => page.getByText("Your text was not sent").count()).toBe(0);
  expect(existsSync(file("two.txt"))).toBe(false);
  await log.locator(".step-card[data-status=refused] .tool-brief", { hasText: "two.txt" }).waitFor();

  const toggle = page.locator(".session-head").getByRole("switch");
  await toggle.click();
  await page.getByRole("button", { name: "Yes, YOLO" }).click();
  await expect.poll(() => toggle.getAttribute("aria-checked")).toBe("true");
  await prompt(page, "And write three.txt");
  await expect.poll(() => log.getByText("It is written.").count()).toBe(2);
  expect(readFileSync(file("three.txt"), "utf8")).toBe("This is three.txt.\n");
  await picture(page, `drive-done-${name}`);
  await accessible(page);

  // The past is the same to one who comes later. A prompt is there with the next look at the past.
  await log.getByText("And write three.txt").waitFor();
  const seen = await log.locator(".tool-name, .said, .prose").allTextContents();
  await page.reload();
  await log.getByText("Please write one.txt").waitFor();
  await expect.poll(() => log.locator(".tool-name, .said, .prose").allTextContents()).toEqual(seen);
  expect(at.troubles).toEqual([]);
});

test("it pauses at the next boundary and goes on from there", async () => {
  let release = () => {};
  const holds = new Promise<void>((released) => (release = released));
  const at = await stage((told) =>
    told.includes("# Notes")
      ? { text: "They are notes." }
      : { text: "I read them first.", calls: [{ name: "read_file", input: { path: "notes.md" } }], holds },
  );
  const { page, model } = at;
  const log = conversationOf(page);
  await begin(at, "What is in notes.md?");
  // As it comes, long before it is complete.
  await log.getByText("I read them first.").waitFor();
  await log.getByText("answering").waitFor();
  await page.getByRole("button", { name: "Pause" }).click();
  await expect
    .poll(() => page.getByRole("status").allTextContents())
    .toContainEqual(expect.stringContaining("Pause asked for"));
  release();
  const resume = page.getByRole("button", { name: "Resume" });
  await resume.waitFor();
  await log.locator(".step-note[data-reason=paused]").waitFor();
  expect(model.asked).toHaveLength(1);
  await picture(page, "drive-paused");
  await resume.click();
  await log.getByText("They are notes.").waitFor();
  await log.locator(".step-note[data-reason=resumed]").waitFor();
  await page.getByRole("button", { name: "Stop", exact: true }).click();
  await page.getByRole("button", { name: "Yes, stop" }).click();
  await page.locator("[data-session][data-state=session_ended]").waitFor();
  await page.getByText("It has ended.").waitFor();
  expect(at.troubles).toEqual([]);
});

test("a model that answers nothing is said to, and asked again", async () => {
  let answers = false;
  const at = await stage(() => {
    if (!answers) throw new Error("it is away");
    return { text: "Here I am." };
  });
  const { page, model } = at;
  await begin(at, "Hello?");
  // It is offered when nothing is tried again by itself any more: nobody races with a timer.
  const again = page.getByRole("button", { name: "Ask the model again" });
  await again.waitFor();
  await conversationOf(page).locator(".step-note[data-reason=retries_exhausted]").waitFor();
  const asked = model.asked.length;
  expect(asked).toBe(1 + LLM_RETRIES);
  await picture(page, "drive-failed");
  answers = true;
  await again.click();
  await conversationOf(page).getByText("Here I am.").waitFor();
  expect(model.asked).toHaveLength(asked + 1);
});

/** How often a model is asked again by itself (`LLM_RETRY_DELAYS_MS`). */
const LLM_RETRIES = 2;

/** In the middle of an answer that will ask for a tool, until it is let go. */
function held(): { script: (told: string) => Scripted; release: () => void } {
  let release = () => {};
  const holds = new Promise<void>((released) => (release = released));
  return { release, script: (told) => ({ ...scribe(told), ...(told.includes("one.txt") ? { holds } : {}) }) };
}

/** What the turn asks is a card on the board of whoever comes next, and goes on from there. */
async function goesOnAsACard({ another, file }: Stage): Promise<void> {
  const page = await another();
  const card = page.locator('.column[data-group="needs_you"] article[data-state="needs_permission"]');
  await card.getByText("This is one.txt.").waitFor();
  await picture(page, "drive-left");
  await card.getByRole("button", { name: "Allow", exact: true }).click();
  await page.locator('article[data-state="task_complete"]').waitFor();
  expect(readFileSync(file("one.txt"), "utf8")).toBe("This is one.txt.\n");
}

test("a tab that is closed in the middle of a turn leaves the turn as a card", async () => {
  const { script, release } = held();
  const at = await stage(script);
  await begin(at, "Please write one.txt");
  await conversationOf(at.page).getByText("I write one.txt.").waitFor();
  await at.page.close();
  release();
  await goesOnAsACard(at);
});

test("so does a tab that talked over /api/chat", async () => {
  const { script, release } = held();
  const at = await stage(script);
  const words = await at.page.evaluate(async (folderPath) => {
    const answer = await fetch("/api/chat/prompt", {
      method: "POST",
      headers: { "content-type": "application/json", "x-quarterdeck": "1" },
      body: JSON.stringify({ folderPath, prompt: "Please write one.txt" }),
    });
    const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
    let said = "";
    while (!said.includes("MESSAGE")) said += (await reader.read()).value;
    return said;
  }, at.workspace);
  expect(words).toContain("INIT");
  await at.page.close();
  release();
  await goesOnAsACard(at);
});
