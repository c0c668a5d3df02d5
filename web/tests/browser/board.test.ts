/** The board in a real browser: what is on a card, keys, layouts. */

import type { BrowserContextOptions, Page } from "playwright-core";
import { expect, test } from "vitest";

import type { SessionList } from "../../src/wire";
import { accessible, PHONE, picture } from "./browser";
import { asking, card, HOSTILE, list, SUB_STATES } from "./sample";
import { type Shown, stage } from "./stage";

const enter = stage();

/** The page over a board that the test made. */
const shown = (board: SessionList, options: BrowserContextOptions = {}): Promise<Shown> =>
  enter({ set: (between) => between.board(board), options, until: "article, .blank" });

const colourOf = (page: Page, selector: string) =>
  page.locator(selector).evaluate((element) => getComputedStyle(element).color);

test("each sub-state shows its icon, colour and label, and an unknown one its group's", async () => {
  const cards = SUB_STATES.map(([group, state]) => card(`${group}-${state}`, group, state));
  const { page, troubles } = await shown(list(cards), { viewport: { width: 1440, height: 4000 } });
  const looks = new Map<string, { icon: string; colour: string; label: string }>();
  for (const [group, state] of SUB_STATES) {
    const badge = page.locator(`[data-session="${group}-${state}"] .badge`);
    const icon = (await badge.locator("svg").getAttribute("class")) ?? "";
    const colour = await badge.evaluate((element) => getComputedStyle(element).color);
    looks.set(state, { icon, colour, label: (await badge.textContent()) ?? "" });
    expect(looks.get(state)?.label).toBe(`Label of ${state}`);
  }
  const icon = (state: string) => looks.get(state)?.icon ?? "";
  expect(icon("needs_permission")).toContain("shield");
  expect(icon("nobody_knows_it")).toContain("bell-ring");
  expect(icon("constructor")).toContain("circle-play");
  // One colour for each group; what is unknown or over has none.
  const [needsYou, autonomous, delivered] = ["idle", "acting", "task_complete"].map(
    (state) => looks.get(state)?.colour,
  );
  expect(new Set([needsYou, autonomous, delivered]).size).toBe(3);
  for (const [group, state] of SUB_STATES) {
    const grey = state === "unknown" || state === "session_ended";
    const expected = { needs_you: needsYou, autonomous, delivered }[group];
    expect(looks.get(state)?.colour === expected, state).toBe(!grey);
  }
  const counts = await page.locator('.column[data-group="delivered"] .sub-counts').innerText();
  expect(
    counts
      .split("\n")
      .map((line) => line.trim())
      .filter(Boolean),
  ).toEqual(["1 ended", "1 finished"]);
  expect(troubles).toEqual([]);
});

test("a card shows what is asked, whole and as text", async () => {
  const { page, troubles } = await shown(asking());
  const at = (id: string) => page.locator(`[data-session="${id}"]`);
  expect(await at("command").locator(".command").innerText()).toBe(
    "docker compose up -d \\\n  && cargo test",
  );
  expect(await at("change").locator('[data-mark="removed"]').innerText()).toContain("old");
  expect(await at("question").locator(".options li").allInnerTexts()).toHaveLength(2);
  expect(await at("plan").locator(".prose").innerText()).toContain(HOSTILE);
  expect(await at("plan").locator("h3").innerText()).toBe(HOSTILE);
  expect(await at("helped").locator(".subagents li").allInnerTexts()).toHaveLength(2);
  const facts = await at("command").locator(".facts").innerText();
  for (const fact of [
    "Claude Code",
    "default",
    "claude-opus-5-5",
    "tmux work:2.1",
    "1.3M tok",
    "$3.42",
    "75%",
  ]) {
    expect(facts).toContain(fact);
  }
  expect(await page.title()).toBe("(4) Quarterdeck");
  expect(await page.locator("main img, main script").count()).toBe(0);
  await picture(page, "desk-light");
  await accessible(page);
  expect(troubles).toEqual([]);
});

test("dark, as a list, and in between", async () => {
  const { page, troubles } = await shown(asking(), { colorScheme: "dark" });
  await accessible(page);
  await picture(page, "desk-dark");
  await page.getByRole("button", { name: "Show as list" }).click();
  expect(await page.locator("article.row").count()).toBe(6);
  await accessible(page);
  await picture(page, "list-dark");
  // A theme that is chosen stays, over the system's and over a reload.
  const ground = await colourOf(page, "body");
  await page.getByRole("button", { name: "Theme: system" }).click();
  expect(await colourOf(page, "body")).not.toBe(ground);
  await page.reload();
  await page.waitForSelector("article.row");
  expect(await page.evaluate(() => document.documentElement.dataset["theme"])).toBe("light");
  expect(await colourOf(page, "body")).not.toBe(ground);
  await page.setViewportSize({ width: 900, height: 800 });
  await picture(page, "list-tablet");
  expect(troubles).toEqual([]);
});

test("a phone has tabs with counts", async () => {
  const { page, troubles } = await shown(asking(), { viewport: PHONE, isMobile: true, hasTouch: true });
  const tabs = page.getByRole("tab");
  expect(await tabs.allInnerTexts()).toEqual(["Needs You (4)", "Autonomous (1)", "Delivered (1)"]);
  expect(await page.locator("article").first().getAttribute("data-group")).toBe("needs_you");
  await accessible(page);
  await picture(page, "phone-light");
  await page.getByRole("tab", { name: "Autonomous" }).tap();
  await page.waitForSelector('[data-session="helped"]');
  expect(await page.locator("article").count()).toBe(1);
  expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
  expect(troubles).toEqual([]);
});

test("keys reach everything", async () => {
  const { page, troubles, between } = await shown(asking());
  between.json(/\/dismiss$/, () => ({ dismissed: true }));
  const focused = () =>
    page.evaluate(() => document.activeElement?.closest("[data-session]")?.getAttribute("data-session"));
  const selects = (id: string) =>
    page.waitForFunction(
      (wanted) => document.activeElement?.closest("[data-session]")?.getAttribute("data-session") === wanted,
      id,
    );
  await page.keyboard.press("j");
  await selects("change");
  await page.keyboard.press("j");
  await selects("command");
  await page.keyboard.press("k");
  await selects("change");
  await page.keyboard.press("a");
  await selects("command");
  await page.keyboard.press("e");
  await page.waitForSelector(".notice");
  // That somebody looks is told by itself.
  const acts = between.asked.filter((line) => line.startsWith("POST") && !line.endsWith("/presence"));
  expect(acts).toEqual(["POST /api/sessions/command/dismiss"]);
  await page.keyboard.press("/");
  await page.keyboard.type("question");
  expect(await page.locator("article").count()).toBe(1);
  await page.keyboard.press("Escape");
  expect(await page.locator("article").count()).toBe(6);
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keyboard shortcuts" }).waitFor();
  await accessible(page);
  await page.keyboard.press("Escape");
  await page.keyboard.press("Control+k");
  await page.getByRole("dialog", { name: "Commands" }).waitFor();
  await accessible(page);
  await picture(page, "palette");
  await page.keyboard.type("session helped");
  await page.keyboard.press("Enter");
  await page.waitForURL("**/sessions/helped");
  expect(await focused()).toBeUndefined();
  expect(troubles).toEqual([]);
});

test("a card that moves keeps the focus", async () => {
  const cards = ["a", "b", "c"].map((id, index) => {
    const one = card(id, "autonomous", "thinking");
    return { ...one, agentState: { ...one.agentState, since: 1_000 - index } };
  });
  const { page, between } = await shown(list(cards));
  await page.keyboard.press("j");
  await page.waitForFunction(() => document.activeElement?.closest('[data-session="a"]'));
  const moved = { ...cards[0]!, agentState: { ...cards[0]!.agentState, since: 1, label: "Moved" } };
  between.tell("session_changed", 2, moved);
  await page.waitForFunction(
    () => document.querySelector('[data-session="a"] .badge')?.textContent === "Moved",
  );
  const order = await page
    .locator("article")
    .evaluateAll((all) => all.map((each) => each.getAttribute("data-session")));
  expect(order).toEqual(["b", "c", "a"]);
  await page.waitForFunction(() => document.activeElement?.closest('[data-session="a"]'));
});

test("a thousand cards are some dozen in the document", async () => {
  const cards = Array.from({ length: 1_000 }, (_, index) => card(`s${index}`, "needs_you", "idle"));
  const { page, troubles } = await shown(list(cards));
  expect(await page.locator("article").count()).toBeLessThan(40);
  expect(await page.locator("#group-needs_you").innerText()).toBe("Needs You 1000");
  await picture(page, "thousand");
  expect(troubles).toEqual([]);
});

test("an empty board says what to do", async () => {
  const { page } = await shown(list([]));
  expect(await page.locator(".blank").innerText()).toContain("qd hooks install");
  expect(await page.title()).toBe("Quarterdeck");
  await accessible(page);
  await picture(page, "empty");
});
