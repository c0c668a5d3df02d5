/** The page against the real daemon: the demo, a restart, a daemon that is away, signing in. */

import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";

import { Between } from "./between";
import { accessible, DESK, launch, open, PHONE, picture, type Tab } from "./browser";
import { Daemon } from "./daemon";

let browser: Browser;

beforeAll(async () => {
  browser = await launch();
});

afterAll(() => browser?.close());

function kept<T extends AsyncDisposable>(one: T): T {
  onTestFinished(() => one[Symbol.asyncDispose]());
  return one;
}

/** The page of a daemon, signed in as people do. */
async function seen(daemon: Daemon): Promise<Tab> {
  return kept(await open(browser, daemon.link()));
}

const prompt = (id: string) => ({
  session_id: id,
  hook_event_name: "UserPromptSubmit",
  prompt: `Work on ${id}`,
  cwd: "/w/atlas",
});

const sessions = (page: Page) =>
  page
    .locator("article")
    .evaluateAll((all) => all.map((each) => each.querySelector("h3")?.textContent).sort());

const showsTitles = (page: Page, titles: readonly string[]) =>
  page.waitForFunction(
    (wanted) =>
      [...document.querySelectorAll("article h3")]
        .map((each) => each.textContent)
        .sort()
        .join() === wanted,
    titles.join(),
  );

test("the demo fills the board, and cards show what real clients asked", async () => {
  const daemon = kept(await Daemon.demo(4));
  const { page, troubles } = await seen(daemon);
  await page.waitForSelector('article[data-state="needs_permission"] .request');
  await page.waitForSelector('.column[data-group="delivered"] article');
  await page.waitForSelector('.column[data-group="autonomous"] article');
  const inPlace = await page.evaluate(() =>
    [...document.querySelectorAll("article")].every(
      (each) => each.closest(".column")?.getAttribute("data-group") === each.getAttribute("data-group"),
    ),
  );
  expect(inPlace).toBe(true);
  await page.waitForFunction(() => {
    const waiting = document.querySelectorAll('article[data-group="needs_you"]').length;
    return document.title === (waiting > 0 ? `(${waiting}) Quarterdeck` : "Quarterdeck");
  });
  await picture(page, "demo-desk");
  await page.setViewportSize(PHONE);
  await page.getByRole("tab", { name: /Needs You \(\d+\)/ }).waitFor();
  await picture(page, "demo-phone");
  expect(troubles).toEqual([]);
});

test("what a recording asks is answered on the page, and it goes on", async () => {
  for (const viewport of [DESK, PHONE]) {
    const daemon = kept(await Daemon.demo(4));
    const { page, troubles } = kept(await open(browser, daemon.link(), { viewport }));
    const waiting = page.locator('article[data-state="needs_permission"]', { hasText: "A recording: " });
    await waiting.first().waitFor();
    const id = (await waiting.first().getAttribute("data-session")) ?? "";
    const card = page.locator(`article[data-session="${id}"]`);
    await accessible(page);
    await picture(page, viewport === PHONE ? "demo-asked-phone" : "demo-asked");
    await card.getByRole("button", { name: "Allow", exact: true }).click();
    // It goes on at once: what is shown in between may never be drawn. On a phone it leaves the tab.
    await page.waitForFunction(
      (session) =>
        document.querySelector(`article[data-session="${session}"]`)?.getAttribute("data-state") !==
        "needs_permission",
      id,
    );
    const records = daemon.ask(["audit", "--json", "--session", id]);
    expect(records).toContain('"recording"');
    expect(records).toContain("confirmed");
    // Nothing but answers and rules is offered, and the session's page says why.
    await page.goto(`${daemon.url}/sessions/${id}`);
    if (viewport === PHONE) await page.getByRole("button", { name: "Details" }).click();
    await page.getByText("this is a recording: there is no agent to be told").first().waitFor();
    expect(await page.getByRole("button", { name: /^(Interrupt|Stop|Reply)$/ }).count()).toBe(0);
    expect(troubles).toEqual([]);
  }
});

test("a restart of the daemon loses and doubles nothing", async () => {
  const daemon = kept(await Daemon.serve());
  for (const id of ["one", "two"]) await daemon.hook(prompt(id));
  const { page, troubles } = await seen(daemon);
  await showsTitles(page, ["Work on one", "Work on two"]);
  await daemon.kill();
  await page.locator('.link-sign[data-state="away"]').waitFor();
  await page.locator(".banner").waitFor();
  await picture(page, "disconnected");
  await accessible(page);
  expect(await sessions(page)).toEqual(["Work on one", "Work on two"]);
  await daemon.again();
  await daemon.hook(prompt("three"));
  await page.locator('.link-sign[data-state="live"]').waitFor();
  await showsTitles(page, ["Work on one", "Work on three", "Work on two"]);
  expect(await page.locator(".banner").count()).toBe(0);
  expect(troubles).toEqual([]);
});

test("a line that breaks is taken up where it broke, with or without news", async () => {
  const daemon = kept(await Daemon.serve());
  await daemon.hook(prompt("one"));
  const between = kept(await Between.open(daemon.url, daemon.token("operate")));
  const { page, troubles } = kept(await open(browser, between.url));
  await showsTitles(page, ["Work on one"]);
  await page.evaluate(() => {
    const states: (string | undefined)[] = [];
    const sign = document.querySelector<HTMLElement>(".link-sign")!;
    new MutationObserver(() => states.push(sign.dataset["state"])).observe(sign, { attributes: true });
    Object.assign(globalThis, { states });
  });
  between.cut();
  await page.waitForFunction(
    () => (globalThis as unknown as { states: string[] }).states.join() === "away,live",
  );
  await daemon.hook(prompt("two"));
  await showsTitles(page, ["Work on one", "Work on two"]);
  expect(between.resumed.map((id) => id !== undefined)).toEqual([false, true]);
  expect(troubles).toEqual([]);
});

test("what is dismissed leaves Needs You until something happens", async () => {
  const daemon = kept(await Daemon.serve());
  await daemon.hook(prompt("one"));
  await daemon.hook({
    session_id: "one",
    hook_event_name: "Stop",
    last_assistant_message: "Should I go on?",
  });
  const { page } = await seen(daemon);
  const waiting = page.locator('.column[data-group="needs_you"] article');
  await waiting.waitFor();
  await waiting.getByRole("button", { name: "Dismiss" }).click();
  await page.locator('.column[data-group="delivered"] article').waitFor();
  expect(await waiting.count()).toBe(0);
  await daemon.hook({ ...prompt("one"), prompt: "Yes, go on" });
  await page.locator('.column[data-group="autonomous"] article').waitFor();
  expect(await page.locator("article").count()).toBe(1);
});

test("what was silent for a day and lives nowhere is moved to History at once, and undone", async () => {
  const daemon = kept(await Daemon.serve());
  for (const id of ["one", "two"]) {
    await daemon.hook(prompt(id));
    await daemon.hook({ session_id: id, hook_event_name: "Stop", last_assistant_message: "Should I go on?" });
  }
  const { page } = await seen(daemon);
  const waiting = page.locator('.column[data-group="needs_you"] article');
  await showsTitles(page, ["Work on one", "Work on two"]);
  const clear = page.getByRole("button", { name: /to History/ });
  expect(await clear.count(), "they are young").toBe(0);
  await page.clock.setFixedTime(Date.now() + 25 * 60 * 60 * 1_000);
  await clear.filter({ hasText: "Move 2 silent for a day to History" }).click();
  await page.getByText("Moved to History: 2 sessions").waitFor();
  await waiting.first().waitFor({ state: "detached" });
  expect(await page.locator("article").count()).toBe(0);
  await page.getByRole("button", { name: "Undo" }).click();
  await page.getByText("Moved back to the board: 2 sessions").waitFor();
  await showsTitles(page, ["Work on one", "Work on two"]);
  await accessible(page);
});

test("the page opens while the daemon is away, and says so", async () => {
  const daemon = kept(await Daemon.serve());
  const { page } = await seen(daemon);
  await page.locator(".blank").waitFor();
  await page.evaluate(async () => void (await navigator.serviceWorker.ready));
  await daemon.kill();
  await page.goto(`${daemon.url}/usage`);
  await page.goto(daemon.url);
  await page.getByText("The daemon does not answer").waitFor();
  await accessible(page);
  await picture(page, "away");
  await page.getByRole("button", { name: "Try now" }).click();
  await daemon.again();
  await page.getByText("No agent was seen yet").waitFor();
});

test("who is not signed in is told how, and a link signs in once", async () => {
  const daemon = kept(await Daemon.serve());
  await daemon.hook(prompt("one"));
  const { page, troubles } = kept(await open(browser, daemon.url));
  await page.getByText("qd open").waitFor();
  await accessible(page);
  await picture(page, "signed-out");
  const paste = async (link: string) => {
    await page.getByLabel("Or paste the link here").fill(link);
    await page.getByRole("button", { name: "Sign in" }).click();
  };
  await paste(`${daemon.url}/sign-in#wrong`);
  await page.getByRole("alert").waitFor();
  const link = daemon.link();
  await paste(link);
  await page.locator("article").waitFor();
  // Somebody else with the same link stays outside; one of his own lets him in.
  const other = kept(await open(browser, link));
  await other.page.getByRole("alert").waitFor();
  await other.page.goto(daemon.url);
  await other.page.getByText("qd open").waitFor();
  const third = await seen(daemon);
  await third.page.locator("article").waitFor();
  expect(third.page.url()).toBe(`${daemon.url}/`);
  expect([...troubles, ...other.troubles, ...third.troubles]).toEqual([]);
});

test("the policy of the page lets no other script run", async () => {
  const daemon = kept(await Daemon.serve());
  const { page } = await seen(daemon);
  const tried = await page.evaluate(() => {
    const throws = (act: () => void) => {
      try {
        act();
        return false;
      } catch {
        return true;
      }
    };
    const script = document.createElement("script");
    const button = document.createElement("button");
    // An attribute is kept, but what it says is not run.
    const attribute = throws(() => button.setAttribute("onclick", "globalThis.ran = true"));
    button.click();
    return {
      script: throws(() => (script.textContent = "globalThis.ran = true")),
      html: throws(() =>
        document.body.insertAdjacentHTML("beforeend", "<img src=x onerror='globalThis.ran = true'>"),
      ),
      attribute,
      ran: (globalThis as { ran?: boolean }).ran ?? false,
    };
  });
  expect(tried).toMatchObject({ script: true, html: true, ran: false });
});

/** A session file of Claude Code: a prompt, a call with its result, an answer. */
function transcript(id: string): string {
  // A minute ago: on any day, at any time of it.
  const at = (nth: number) => new Date(Date.now() - 60_000 + nth * 1_000).toISOString();
  const common = { sessionId: id, cwd: "/w/atlas", gitBranch: "main", version: "2.1.325" };
  const usage = { input_tokens: 4_000, output_tokens: 500 };
  const model = "claude-opus-4-6";
  const said = (nth: number, content: object) => ({
    ...common,
    type: "assistant",
    uuid: `a${nth}`,
    requestId: `req_${nth}`,
    timestamp: at(nth),
    message: { id: `msg_${nth}`, role: "assistant", model, content: [content], usage },
  });
  const heard = (nth: number, content: unknown) => ({
    ...common,
    type: "user",
    uuid: `u${nth}`,
    timestamp: at(nth),
    message: { role: "user", content },
  });
  const lines = [
    heard(1, "Mend the zebra parser"),
    said(2, { type: "tool_use", id: "toolu_1", name: "Bash", input: { command: "cargo test zebra" } }),
    heard(3, [{ type: "tool_result", tool_use_id: "toolu_1", content: "3 passed" }]),
    said(4, { type: "text", text: "The zebra parser is mended." }),
  ];
  return lines.map((line) => `${JSON.stringify(line)}\n`).join("");
}

test("what the daemon read of a session is on its pages", async () => {
  const id = "4f9d2c1a-0000-4000-8000-000000000001";
  const files = { [`.claude/projects/-w-atlas/${id}.jsonl`]: transcript(id) };
  const daemon = kept(await Daemon.serve(files));
  await daemon.hook({ ...prompt(id), transcript_path: undefined });
  const { page, troubles } = await seen(daemon);
  const card = page.locator("article");
  await card.getByText("$").first().waitFor();
  await card.getByRole("link").first().click();
  await page.getByText("The zebra parser is mended.").waitFor();
  await page.getByText("cargo test zebra").first().waitFor();
  await picture(page, "real-session");
  await accessible(page);

  await page.goto(`${daemon.url}/usage`);
  await page.getByText("claude-opus-4-6").first().waitFor();
  await page.getByText("/w/atlas").or(page.getByTitle("/w/atlas")).first().waitFor();
  await picture(page, "real-usage");

  await page.goto(`${daemon.url}/history`);
  await page.getByRole("searchbox").fill("zebra");
  await page.locator("mark", { hasText: "zebra" }).first().waitFor();
  await picture(page, "real-history");
  expect(troubles).toEqual([]);
});

test("a journal that was damaged is told on every page, with what to do", async () => {
  const daemon = kept(await Daemon.serve());
  await daemon.hook(prompt("before"));
  const { page } = await seen(daemon);
  await showsTitles(page, ["Work on before"]);
  expect(await page.locator("[data-trouble]").count()).toBe(0);
  await daemon.stop();
  daemon.damageJournal();
  await daemon.again();
  await page.reload();
  const told = page.locator('[data-trouble="journal_gap"]');
  await told.waitFor();
  expect(await told.innerText()).toContain("The journal was damaged");
  await page.goto(`${daemon.url}/usage`);
  await told.waitFor();
  await accessible(page);
  await picture(page, "trouble-desk");
});
