/** A session's page, usage and history in a real browser. */

import type { Browser, BrowserContextOptions } from "playwright-core";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";

import type { HistoryEntry, HistoryPage, TranscriptEntry, UsageReport, UsageRow } from "../../src/wire";
import { Between } from "./between";
import { accessible, launch, open, PHONE, picture, type Tab } from "./browser";
import { Daemon } from "./daemon";
import { asking, detail, entries, HOSTILE } from "./sample";

let browser: Browser;
let daemon: Daemon;

beforeAll(async () => {
  browser = await launch();
  daemon = await Daemon.serve();
});

afterAll(async () => {
  await browser?.close();
  await daemon?.[Symbol.asyncDispose]();
});

interface Shown extends Tab {
  between: Between;
}

const ALL = entries(130);

/** What the session says while a test looks on. */
let fresh: TranscriptEntry[] = [];

const usageRow = (key: string, totalCost: number): UsageRow => ({
  key,
  totalCost,
  inputTokens: 1_000,
  outputTokens: 2_000,
  cacheCreationTokens: 3_000,
  cacheReadTokens: 4_000,
  totalTokens: 10_000,
  estimated: false,
});

/** Rows for what was asked for; of days only today. */
function usage(url: URL): UsageReport {
  const keys: Record<string, string[]> = {
    day: [new Date().toLocaleDateString("sv")],
    model: ["claude-opus-5-5", "gpt-5.5"],
    project: ["/home/ada/work/atlas", "/home/ada/work/site"],
  };
  const rows = (keys[url.searchParams.get("by") ?? ""] ?? []).map((key, index) => usageRow(key, 12 - index));
  return {
    rows,
    troubles: [],
    totals: usageRow(
      "",
      rows.reduce((sum, row) => sum + row.totalCost, 0),
    ),
  };
}

function history(url: URL): HistoryPage {
  const { searchParams: wanted } = url;
  const now = Date.now();
  const entry = (id: string): HistoryEntry => ({
    sessionId: id,
    harness: "codex",
    title: `Past ${id}`,
    project: "/w/importer",
    startedAt: now - 7_200_000,
    endedAt: now - 3_600_000,
    totalTokens: 12_000,
    costUsd: 0.4,
    ...(wanted.get("q") ? { snippet: `${wanted.get("q")} ${HOSTILE}` } : {}),
  });
  if (wanted.get("q") === "nothing") return { sessions: [] };
  return wanted.has("before") ? { sessions: [entry("older")] } : { sessions: [entry("newer")], before: "c1" };
}

async function shown(path: string, options: BrowserContextOptions = {}): Promise<Shown> {
  const between = await Between.open(daemon.url, daemon.token("operate"));
  onTestFinished(() => between[Symbol.asyncDispose]());
  const board = asking();
  between.board(board);
  between.json(/^\/api\/live\/sessions\/\w+$/, (url) => {
    const id = url.pathname.split("/").at(-1);
    return detail(board.sessions.find((card) => card.sessionId === id) ?? board.sessions[0]!);
  });
  between.json(/\/transcript$/, ({ searchParams }) => {
    if (searchParams.has("after")) {
      return { entries: fresh, after: "130", more: false };
    }
    const end = Number(searchParams.get("before") ?? ALL.length);
    const start = Math.max(0, end - Number(searchParams.get("limit")));
    return { entries: ALL.slice(start, end), before: String(start), after: "130", more: start > 0 };
  });
  between.json(/^\/api\/usage$/, usage);
  between.json(/^\/api\/history$/, history);
  const tab = await open(browser, between.url + path, options);
  onTestFinished(() => tab[Symbol.asyncDispose]());
  return { ...tab, between };
}

test("a session's page shows its transcript by pages, live, and nothing of it is HTML", async () => {
  const { page, troubles, between } = await shown("/sessions/command", {
    permissions: ["clipboard-read", "clipboard-write"],
  });
  const lines = page.locator(".entry");
  await lines.first().waitFor();
  expect(await lines.count()).toBe(50);
  // What is new comes by itself when the session does something.
  fresh = [{ id: "fresh", role: "assistant", text: "Just said" }];
  onTestFinished(() => void (fresh = []));
  const [card] = asking().sessions;
  between.tell("session_changed", 2, { ...card, lastSignal: Date.now() });
  await page.getByText("Just said").waitFor();
  for (const count of [101, 131]) {
    await page.getByRole("button", { name: "Show older" }).click();
    await page.waitForFunction((wanted) => document.querySelectorAll(".entry").length === wanted, count);
  }
  expect(await page.getByRole("button", { name: "Show older" }).count()).toBe(0);
  expect(await page.locator(".transcript").innerText()).toContain(`Prompt 0 ${HOSTILE}`);
  await page.locator(".tool summary").first().click();
  expect(await page.locator(".tool-output").first().innerText()).toBe(HOSTILE);
  expect(await page.locator("main img, main script, main a[href^='javascript']").count()).toBe(0);
  const aside = page.locator(".session-aside");
  expect(await aside.innerText()).toContain("because a rule says so.");
  expect(await aside.innerText()).toContain("2.1.330, newer than tested (2.1.325 to 2.1.326)");
  expect(await aside.locator(".run").count()).toBe(3);
  expect(await aside.locator('.run[data-outcome="running"]').count()).toBe(1);
  await aside.getByRole("button", { name: "Copy the command" }).click();
  await page.getByText("Copied").waitFor();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe("claude --resume vendor-command");
  await accessible(page);
  await picture(page, "session");
  expect(troubles).toEqual([]);
});

test("a session's page on a phone", async () => {
  const { page, troubles } = await shown("/sessions/plan", { viewport: PHONE, colorScheme: "dark" });
  await page.locator(".entry").first().waitFor();
  await picture(page, "session-phone");
  await page.getByRole("button", { name: "Details" }).click();
  await page.getByText("Why does it say so?").waitFor();
  expect(await page.locator(".entry").count()).toBe(0);
  await accessible(page);
  expect(troubles).toEqual([]);
});

test("usage is plotted by day, model and project, and time by group", async () => {
  const { page, troubles, between } = await shown("/usage");
  await page.locator(".times li").nth(5).waitFor();
  expect(await page.locator(".chart-hit").count()).toBe(30);
  expect(await page.locator(".shares li").allInnerTexts()).toHaveLength(4);
  expect(await page.locator(".times .group-bar").first().getAttribute("aria-label")).toMatch(
    /^Needs You 1m, Autonomous 8m/,
  );
  await page.getByRole("button", { name: "7 days" }).click();
  await page.waitForFunction(() => document.querySelectorAll(".chart-hit").length === 7);
  expect(between.asked.at(-1)).toMatch(/^GET \/api\/usage\?by=project&since=\d{4}-\d\d-\d\d$/);
  await accessible(page);
  await picture(page, "usage");
  expect(troubles).toEqual([]);
});

test("history is searched and read on", async () => {
  const { page, troubles, between } = await shown("/history");
  await page.getByText("Past newer").waitFor();
  await page.getByRole("button", { name: "Show older" }).click();
  await page.getByText("Past older").waitFor();
  await page.keyboard.press("/");
  await page.keyboard.type("cookie jar");
  await page.locator(".snippet").first().waitFor();
  expect(await page.locator(".snippet").first().innerText()).toBe(`cookie jar ${HOSTILE}`);
  expect(between.asked.at(-1)).toBe("GET /api/history?limit=50&q=cookie+jar");
  await accessible(page);
  await picture(page, "history");
  await page.getByRole("searchbox").fill("nothing");
  await page.getByText("No session was found").waitFor();
  expect(troubles).toEqual([]);
});

test("what the server refuses is said, and can be tried again", async () => {
  const { page, between } = await shown("/history");
  await page.getByText("Past newer").waitFor();
  between.json(
    /^\/api\/history$/,
    () => ({ code: "not_taken", message: "the index is being built", retryable: true }),
    503,
  );
  await page.getByRole("searchbox").fill("cookie");
  await page.getByText("the index is being built").waitFor();
  await accessible(page);
  between.json(/^\/api\/history$/, history);
  await page.getByRole("button", { name: "Try again" }).click();
  await page.locator(".snippet").waitFor();
});
