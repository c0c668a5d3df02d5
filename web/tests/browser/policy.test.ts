/** What agents may do without asking, in a real browser: seen, chosen, and never by a slip. */

import type { BrowserContextOptions } from "playwright-core";
import { expect, test } from "vitest";

import type { Card, PolicyView, SessionList } from "../../src/wire";
import type { Between } from "./between";
import { accessible, picture } from "./browser";
import { ALL, card, detail, list } from "./sample";
import { HAND, type Shown, stage } from "./stage";

const enter = stage();

interface Chosen extends Shown {
  say: (card: Card) => void;
}

async function shown(board: SessionList, options: BrowserContextOptions = {}, path = "/"): Promise<Chosen> {
  const set = (between: Between) => {
    between.board(board);
    for (const each of board.sessions) {
      between.json(new RegExp(`^/api/live/sessions/${each.sessionId}$`), () => detail(each));
    }
    between.take(/^\/api\/sessions\//, () => ({ value: { decisionId: "dec_1", state: "delivered" } }));
  };
  const there = await enter({ set, options, path, until: "[data-session]" });
  return { ...there, say: (each) => there.tell("session_changed", each) };
}

const LIVING = { ...ALL, canResume: false };

const under = (id: string, policy?: Partial<PolicyView>, more: Partial<Card> = {}) =>
  card(id, "autonomous", "thinking", {
    capabilities: LIVING,
    ...(policy ? { policy: { preset: "manual", rules: 0, ...policy } } : {}),
    ...more,
  });

const told = ({ between }: Shown) =>
  between.told.map(({ path, body }) => [path.replace(/^\/api\/sessions\//, ""), body]);

test("a card says what is effective, and whose it is", async () => {
  const FORBIDDEN = "a file of its project forbids it";
  const board = list([
    under("yolo", { preset: "yolo", from: "session", rules: 2 }),
    under("careful", { preset: "careful", from: "project" }),
    under("rules", { rules: 3 }),
    under("own", undefined, { mode: "bypassPermissions" }),
    under("asked"),
    under(
      "gemini",
      { preset: "yolo", from: "global" },
      {
        harness: "gemini_cli",
        capabilities: {
          ...LIVING,
          canYolo: false,
          why: { canYolo: "its client takes no approval from outside" },
        },
      },
    ),
    under(
      "forbidden",
      { preset: "careful", from: "global", yoloForbidden: true },
      {
        capabilities: { ...LIVING, canYolo: false, why: { canYolo: FORBIDDEN } },
      },
    ),
  ]);
  const { page, at, troubles } = await shown(board, { viewport: { width: 1440, height: 1600 } });
  const chip = (id: string) => at(id).locator(".policy");
  expect(await chip("yolo").innerText()).toBe("YOLO: answers everything yes");
  expect(await chip("yolo").getAttribute("title")).toContain("chosen for this session");
  expect(await chip("careful").innerText()).toBe("careful");
  expect(await chip("careful").getAttribute("title")).toContain("its project's");
  expect(await chip("rules").innerText()).toBe("3 rules");
  expect(await chip("own").count()).toBe(0);
  expect(await chip("asked").count()).toBe(0);
  expect(await chip("gemini").innerText()).toBe("YOLO (not in effect)");
  await at("gemini").getByRole("button", { name: "More" }).click();
  expect(await at("gemini").getByRole("switch").count()).toBe(0);
  await at("own").getByRole("button", { name: "More" }).click();
  const own = at("own").getByRole("switch", { name: "YOLO on", checked: true });
  expect(await own.getAttribute("aria-disabled")).toBe("true");
  expect(await own.getAttribute("title")).toContain("bypassPermissions");
  await at("forbidden").getByRole("button", { name: "More" }).click();
  const option = at("forbidden").locator('option[value="yolo"]');
  expect(await option.innerText()).toBe(`YOLO: ${FORBIDDEN}`);
  expect(await option.isDisabled()).toBe(true);
  await accessible(page);
  await picture(page, "policy-desk");
  expect(troubles).toEqual([]);
});

test("YOLO is asked about before it is on, and off at once", async () => {
  const one = under("one");
  const tab = await shown(list([one]));
  const { page, at, say } = tab;
  await at("one").getByRole("button", { name: "More" }).click();
  await at("one").getByRole("switch", { name: "YOLO off" }).click();
  const question = at("one").getByRole("group", { name: "Answer everything yes?" });
  await question.waitFor();
  expect(await page.evaluate(() => document.activeElement?.textContent)).toBe("No");
  await accessible(page);
  await picture(page, "policy-ask");
  // A slip of Enter says no.
  await page.keyboard.press("Enter");
  await question.waitFor({ state: "detached" });
  expect(told(tab)).toEqual([]);
  await at("one").getByRole("switch").click();
  await question.getByRole("button", { name: "Yes, YOLO" }).click();
  await page.getByText("YOLO switched").waitFor();
  expect(await at("one").getByRole("switch").getAttribute("aria-checked")).toBe("false");
  say({ ...one, policy: { preset: "yolo", from: "session", rules: 0 } });
  await at("one").locator(".policy.is-loud").waitFor();
  await at("one").getByRole("switch", { name: "YOLO on", checked: true }).click();
  await page.waitForFunction(() => document.querySelector('[role="switch"][aria-disabled]') === null);
  expect(told(tab)).toEqual([
    ["one/yolo", { on: true }],
    ["one/yolo", { on: false }],
  ]);
});

test("a preset is chosen on the session's page, and is what the server says it is", async () => {
  for (const [name, options] of [
    ["desk", {}],
    ["phone", HAND],
  ] as const) {
    const one = under("one", { preset: "auto-edit", from: "project", rules: 1 });
    const tab = await shown(list([one]), options, "/sessions/one");
    const { page, say, between, troubles } = tab;
    const more = page.getByRole("button", { name: "More" });
    if (name === "phone") await more.click();
    const choice = page.getByLabel("Without asking");
    expect(await choice.inputValue()).toBe("");
    await choice.selectOption("careful");
    await page.getByText("Policy chosen").waitFor();
    expect(await choice.inputValue()).toBe("");
    say({ ...one, policy: { preset: "careful", from: "session", rules: 1 } });
    await page.locator(".policy", { hasText: "careful, 1 rule" }).waitFor();
    expect(await choice.inputValue()).toBe("careful");
    await accessible(page);
    await picture(page, `policy-session-${name}`);
    expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
    await choice.selectOption("yolo");
    const question = page.getByRole("group", { name: "Answer everything yes?" });
    await question.waitFor();
    await picture(page, `policy-session-ask-${name}`);
    expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
    await question.getByRole("button", { name: "Yes, YOLO" }).click();
    await choice.waitFor();
    await choice.selectOption("");
    await page.waitForFunction(() => !document.querySelector<HTMLSelectElement>(".preset-choice")?.disabled);
    expect(told(tab)).toEqual([
      ["one/policy", { preset: "careful" }],
      ["one/policy", { preset: "yolo" }],
      ["one/policy", { preset: null }],
    ]);
    // The server's no is told as it is.
    between.answer(/policy$/, (_, response) => {
      response.writeHead(403, { "content-type": "application/json" });
      response.end(
        JSON.stringify({
          code: "YOLO_FORBIDDEN",
          message: "a file of its project forbids YOLO",
          retryable: false,
        }),
      );
    });
    await choice.selectOption("manual");
    await page.getByText("Not delivered: Policy: a file of its project forbids YOLO").waitFor();
    expect(troubles).toEqual([]);
  }
});

test("the palette acts on the selected session, and asks before it stops it or lets it go", async () => {
  const tab = await shown(list([under("one"), card("mute", "autonomous", "thinking")]));
  const { page } = tab;
  const choose = async (text: string) => {
    await page.keyboard.press("Control+k");
    await page.getByRole("dialog", { name: "Commands" }).waitFor();
    await page.keyboard.type(text);
    await page.keyboard.press("Enter");
  };
  const closed = () => page.getByRole("dialog", { name: "Commands" }).waitFor({ state: "detached" });
  await page.locator('[data-session="one"] a').first().focus();
  await choose("interrupt");
  await page.getByText("Interrupt sent").waitFor();
  await choose("stop");
  await page.getByRole("option", { name: "No, leave it as it is", selected: true }).waitFor();
  await accessible(page);
  await picture(page, "policy-palette-ask");
  await page.keyboard.press("Enter");
  await closed();
  await choose("yolo on");
  await page.keyboard.type("yes");
  await page.keyboard.press("Enter");
  await page.getByText("YOLO switched").waitFor();
  await choose("policy careful");
  await page.getByText("Policy chosen").waitFor();
  expect(told(tab)).toEqual([
    ["one/interrupt", {}],
    ["one/yolo", { on: true }],
    ["one/policy", { preset: "careful" }],
  ]);
  await page.keyboard.press("Control+k");
  await picture(page, "policy-palette");
  await page.keyboard.press("Escape");
  await page.locator('[data-session="mute"] a').first().focus();
  await page.keyboard.press("Control+k");
  await page.getByRole("dialog", { name: "Commands" }).waitFor();
  expect(await page.getByRole("option", { name: /^(Stop|Interrupt|YOLO|Policy)/ }).count()).toBe(0);
});

test("a spent budget is let go on", async () => {
  const spent = card("spent", "needs_you", "budget_exceeded", {});
  const tab = await shown(list([spent]));
  await tab.at("spent").getByRole("button", { name: "Let it go on" }).click();
  await tab.page.getByText("Goes on: Session spent").waitFor();
  expect(told(tab)).toEqual([["spent/dismiss", {}]]);
});
