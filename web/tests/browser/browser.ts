/** Debian's chromium, and what every page of every test must hold to. */

import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { expect } from "vitest";

import { STOP_ASK_MS } from "../../src/limits";

const PROGRAM = process.env["CHROMIUM"] ?? "/usr/bin/chromium";

/** Pictures for people to look at; the folder is ignored by git. */
const PICTURES = join(import.meta.dirname, "screenshots");

export const DESK = { width: 1440, height: 900 };
export const PHONE = { width: 390, height: 844 };

export function launch(): Promise<Browser> {
  mkdirSync(PICTURES, { recursive: true });
  // Containers have no user namespaces for its sandbox; the pages are our own.
  return chromium.launch({ executablePath: PROGRAM, args: ["--no-sandbox"] });
}

export interface Tab extends AsyncDisposable {
  page: Page;
  /** What the page did that it must not: errors, broken policy, dialogs. */
  troubles: string[];
}

export async function open(browser: Browser, url: string, options: BrowserContextOptions = {}): Promise<Tab> {
  const context = await browser.newContext({ viewport: DESK, reducedMotion: "reduce", ...options });
  await context.addInitScript(takeTime, STOP_ASK_MS);
  const page = await context.newPage();
  const troubles: string[] = [];
  page.on("pageerror", (error) => troubles.push(error.message));
  page.on("dialog", (dialog) => {
    troubles.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("console", (message) => {
    if (/Content Security Policy|Trusted|React|Warning/i.test(message.text())) troubles.push(message.text());
  });
  await page.goto(url);
  return { page, troubles, [Symbol.asyncDispose]: () => context.close() };
}

/** On a busy machine a look takes longer than a question stands: here silence is a no when a test says so. */
function takeTime(askMs: number): void {
  const waits: (() => void)[] = [];
  const timer = globalThis.setTimeout;
  const held = (act: () => void, ms?: number, ...rest: unknown[]) =>
    ms === askMs ? void waits.push(act) : timer(act, ms, ...rest);
  Object.assign(globalThis, { setTimeout: held, silence: () => waits.splice(0).forEach((act) => act()) });
}

/** Nobody has answered what the page asked. */
export const silence = (page: Page): Promise<void> =>
  page.evaluate(() => (globalThis as unknown as { silence: () => void }).silence());

export async function picture(page: Page, name: string): Promise<void> {
  await page.screenshot({ path: join(PICTURES, `${name}.png`) });
}

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

interface Violation {
  id: string;
  impact: string;
  nodes: { html: string; failureSummary: string }[];
}

/** No serious problem for people who do not see or point. */
export async function accessible(page: Page): Promise<void> {
  await page.evaluate(AXE);
  const found = await page.evaluate(async () => {
    const axe = (globalThis as unknown as { axe: { run(): Promise<{ violations: Violation[] }> } }).axe;
    return (await axe.run()).violations;
  });
  const serious = found.filter(({ impact }) => impact === "serious" || impact === "critical");
  expect(
    serious.map(({ id, nodes }) => [id, ...nodes.slice(0, 3).map((node) => node.failureSummary + node.html)]),
  ).toEqual([]);
}
