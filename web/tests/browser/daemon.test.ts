/** The page against the real daemon: the demo, a restart, a daemon that is away, signing in. */

import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";

import { Between } from "./between";
import { accessible, launch, open, PHONE, picture, type Tab } from "./browser";
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

interface Seen extends Tab {
  between: Between;
}

async function seen(daemon: Daemon, viewport?: { width: number; height: number }): Promise<Seen> {
  const between = kept(await Between.open(daemon.url, daemon.token("operate")));
  const tab = kept(await open(browser, between.url, viewport ? { viewport } : {}));
  return { ...tab, between };
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
  const groups = await page
    .locator("article")
    .evaluateAll((all) =>
      all.every(
        (each) => each.closest(".column")?.getAttribute("data-group") === each.getAttribute("data-group"),
      ),
    );
  expect(groups).toBe(true);
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
  await daemon.hook(prompt("one"));
  await page.locator('.column[data-group="autonomous"] article').waitFor();
  expect(await page.locator("article").count()).toBe(1);
});

test("the page opens while the daemon is away, and says so", async () => {
  const daemon = kept(await Daemon.serve());
  const { page, between } = await seen(daemon);
  await page.locator(".blank").waitFor();
  await page.evaluate(async () => void (await navigator.serviceWorker.ready));
  await daemon.kill();
  await page.goto(`${between.url}/usage`);
  await page.goto(between.url);
  await page.getByText("The daemon does not answer").waitFor();
  await accessible(page);
  await picture(page, "away");
  await daemon.again();
  await page.getByRole("button", { name: "Try now" }).click();
  await page.getByText("No agent was seen yet").waitFor();
});

test("who is not signed in is told how, and a link signs in once", async () => {
  const daemon = kept(await Daemon.serve());
  await daemon.hook(prompt("one"));
  const between = kept(await Between.open(daemon.url, undefined));
  const codes: string[] = [];
  between.answer(/^\/api\/sign-in$/, (_, response, asked) => {
    let body = "";
    asked.on("data", (piece: Buffer) => (body += piece.toString()));
    asked.on("end", () => {
      const { code } = JSON.parse(body) as { code: string };
      codes.push(`${asked.headers["x-quarterdeck"]} ${code}`);
      const good = code === "good";
      if (good) between.signIn(daemon.token("operate"));
      response.writeHead(good ? 204 : 401, { "content-type": "application/json" });
      response.end(
        good
          ? undefined
          : JSON.stringify({ code: "wrong_code", message: "this link was used", retryable: false }),
      );
    });
  });
  const { page, troubles } = kept(await open(browser, between.url));
  await page.getByText("qd open").waitFor();
  await accessible(page);
  await picture(page, "signed-out");
  await page.getByLabel("Or paste the link here").fill(`${between.url}/sign-in#bad`);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("this link was used").waitFor();
  const other = kept(await open(browser, `${between.url}/sign-in#good`));
  await other.page.locator("article").waitFor();
  expect(new URL(other.page.url()).pathname + new URL(other.page.url()).hash).toBe("/");
  expect(codes).toEqual(["1 bad", "1 good"]);
  expect([...troubles, ...other.troubles]).toEqual([]);
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
