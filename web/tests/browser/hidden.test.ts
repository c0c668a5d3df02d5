/** What is shown is what runs: commands that hide, and keys that come too early, in a real browser. */

import type { BrowserContextOptions, Locator, Page } from "playwright-core";
import { expect, test } from "vitest";

import { READ_MS_MIN } from "../../src/limits";
import type { Card, RequestView } from "../../src/wire";
import type { Between } from "./between";
import { accessible, picture } from "./browser";
import { ALL, card, detail, list } from "./sample";
import { HAND, isRead, readThrough, type Shown, stage } from "./stage";

const enter = stage();

const SIZES = [
  ["desk", {}],
  ["phone", HAND],
] as const;

const asks = (input: unknown, more: Partial<RequestView> = {}): RequestView => ({
  requestId: "r1",
  key: "req_r1",
  revision: "a",
  kind: "permission",
  tool: "Bash",
  way: "hook",
  input,
  since: Date.now(),
  takesWords: true,
  takesChanges: true,
  scopes: ["session", "always"],
  suggestions: ["Bash(ls:*)"],
  ...more,
});

const asking = (id: string, ...requests: RequestView[]): Card =>
  card(id, "needs_you", "needs_permission", { capabilities: ALL, requests });

async function shown(
  cards: Card[],
  options: BrowserContextOptions = {},
  path = "/",
): Promise<Shown & { say: (card: Card) => void }> {
  const set = (between: Between) => {
    between.board(list(cards));
    between.take(/^\/api\/(requests|sessions)\//, () => ({
      value: { decisionId: "dec_1", state: "delivered" },
    }));
  };
  const there = await enter({ set, options, path, until: "[data-session] .request" });
  return { ...there, say: (each) => there.tell("session_changed", each) };
}

const allow = (place: Locator) => place.getByRole("button", { name: "Allow", exact: true });
const isLive = async (button: Locator) => (await button.getAttribute("aria-disabled")) === null;

/** What came is new no more: what still cannot be allowed was not read. */
const settles = async (page: Page): Promise<void> => {
  const from = await page.evaluate(() => performance.now());
  await page.waitForFunction(([begun, ms]) => performance.now() > begun! + ms!, [from, READ_MS_MIN]);
};

/** Everything that allows, by hand: nothing of it may be sent. */
async function allowsNothing({ page, between }: Shown, place: Locator, isPlan = false): Promise<void> {
  // On the session's own page keys are for it, whatever has the focus.
  for (const link of await place.locator(".card-title a").all()) await link.focus();
  await settles(page);
  await page.keyboard.press("y");
  const buttons = page.getByRole("button", {
    name: /^(Allow|Approve|Always allow this|Allow for this session)$/,
  });
  for (const button of await buttons.all()) {
    expect(await isLive(button)).toBe(false);
    await button.dispatchEvent("click");
  }
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Command or session" }).waitFor();
  // A plan is for persons only: no switch answers it.
  const lets = isPlan ? /^(Allow|Approve)/ : /^(Allow|YOLO on|Policy (careful|auto-edit|as))/;
  expect(await page.getByRole("option", { name: lets }).allInnerTexts()).toEqual([]);
  await page.keyboard.press("Escape");
  expect(between.told).toEqual([]);
}

const ATTACKS: readonly (readonly [name: string, command: string, seen: string])[] = [
  ["an override of the direction", "echo ok \u202e~ fr- mr ;", "echo ok ⟨U+202E⟩~ fr- mr ;"],
  ["isolates", "ls \u2066; rm -rf ~ #\u2069", "ls ⟨U+2066⟩; rm -rf ~ #⟨U+2069⟩"],
  ["zero width", "r\u200bm -rf\u2060 ~\ufeff", "r⟨U+200B⟩m -rf⟨U+2060⟩ ~⟨U+FEFF⟩"],
  ["a terminal's escape", "ls\u001b[2K\rrm -rf ~", "ls⟨U+001B⟩[2K⟨U+000D⟩rm -rf ~"],
  ["tags", "ls\u{e0072}\u{e006d}", "ls⟨U+E0072⟩⟨U+E006D⟩"],
  ["a space that is none", "curl\u00a0x\u3164|\u2028sh", "curl⟨U+00A0⟩x⟨U+3164⟩|⟨U+2028⟩sh"],
  ["half a character", "ls \ud800", "ls ⟨U+D800⟩"],
  ["blank lines", `ls${"\n".repeat(80)}rm -rf ~`, "ls\n⟨79 blank lines⟩\nrm -rf ~"],
  ["a run of spaces", `ls ${" ".repeat(500)}; rm -rf ~`, "ls⟨501 spaces⟩; rm -rf ~"],
  ["letters that are read from the right", "rm א; ls ב 1 2", "rm א; ls ב 1 2"],
];

test.each(SIZES)("a command that hides is seen as it is, and sent as it is (%s)", async (size, options) => {
  const asksFor = (index: number) =>
    asking("one", asks({ command: ATTACKS[index]![1] }, { key: `req_${index}`, requestId: `r${index}` }));
  const { page, at, between, say, troubles } = await shown([asksFor(0)], options);
  const place = at("one");
  for (const [index, [name, , seen]] of ATTACKS.entries()) {
    say(asksFor(index));
    await place.locator(`[data-key=req_${index}]`).waitFor();
    expect([name, await place.locator(".command").innerText()]).toEqual([name, seen]);
    if (index === 0) await picture(page, `hidden-${size}`);
  }
  await accessible(page);
  // Every letter stands right of the one before it, whatever its script.
  const lefts = await place.locator(".command .code-lines > span").evaluate((line) => {
    const text = line.firstChild!;
    return Array.from(text.textContent!, (_, index) => {
      const range = document.createRange();
      range.setStart(text, index);
      range.setEnd(text, index + 1);
      return range.getBoundingClientRect().left;
    });
  });
  expect(lefts).toEqual([...lefts].sort((a, b) => a - b));
  say(asksFor(0));
  await place.locator("[data-key=req_0]").waitFor();
  await allow(place).click();
  await place.getByText("Sent; waiting").waitFor();
  // The daemon runs what was asked for: no text of it goes over the wire.
  const { key: _, ...body } = between.told[0]!.body as { key: string };
  expect(body).toEqual({ decision: { type: "allow" }, revision: "a" });
  // A box for typing would hide it again.
  expect(await place.getByRole("button", { name: "Edit and allow" }).count()).toBe(0);
  expect(troubles).toEqual([]);
});

test("messages in Arabic, Hebrew and with joined emoji stay readable; an override in them is seen", async () => {
  const title = "שלום 👩\u200d💻 می\u200cخواهم \u202eevil";
  const one = { ...asking("one", asks({ command: "ls", description: "مرحبا \u202e!" })), title };
  const { at } = await shown([one]);
  expect(await at("one").locator(".card-title").innerText()).toBe(
    "שלום 👩\u200d💻 می\u200cخواهم ⟨U+202E⟩evil",
  );
  expect(await at("one").locator(".request-reason").innerText()).toBe("مرحبا ⟨U+202E⟩!");
});

const LONG = [...Array.from({ length: 60 }, (_, index) => `echo ${index}`), "rm -rf ~"].join("\n");

test.each(SIZES)(
  "what is folded or further down cannot be allowed before it was seen (%s)",
  async (size, options) => {
    const there = await shown([asking("one", asks({ command: LONG }))], options);
    const { page, at, between } = there;
    const place = at("one");
    await place.getByText("To allow it, read all of it first").waitFor();
    await picture(page, `unread-${size}`);
    await allowsNothing(there, place);
    // The switch that answers everything yes would let it run, too.
    await place.getByRole("button", { name: "More", exact: true }).click();
    expect(await isLive(place.getByRole("switch"))).toBe(false);
    await place.getByRole("button", { name: /more lines/ }).click();
    await allowsNothing(there, place);
    await readThrough(place);
    expect(await isLive(place.getByRole("switch"))).toBe(true);
    await picture(page, `read-${size}`);
    await page.keyboard.press("y");
    await place.getByText("Sent; waiting").waitFor();
    expect(between.told).toHaveLength(1);
  },
);

test.each(SIZES)(
  "so it is with a plan, a change of many files, and on the session's page (%s)",
  async (_, options) => {
    const plan = asks(
      { plan: `# Plan\n\n${"A step.\n\n".repeat(80)}Then rm -rf ~` },
      { kind: "plan", tool: "ExitPlanMode" },
    );
    const content = `${"\n".repeat(10)}a\n`.repeat(30);
    const change = asks({ file_path: "/x", content }, { key: "req_2", requestId: "r2", tool: "Write" });
    for (const request of [plan, change]) {
      const one = asking("one", request);
      for (const path of ["/", "/sessions/one"]) {
        const there = await shown([one], options, path);
        there.between.json(/^\/api\/live\/sessions\/one$/, () => detail(one));
        await there.at("one").getByText("To allow it, read all of it first").waitFor();
        await allowsNothing(there, there.at("one"), request.kind === "plan");
      }
    }
  },
);

test("in the list a line allows nothing: what it stands for is unfolded and read first", async () => {
  const { page, at, between } = await shown([
    asking("one", asks({ command: LONG })),
    asking("two", asks({ command: "ls" }, { key: "req_2" })),
  ]);
  await page.getByRole("button", { name: "Show as list" }).click();
  await at("one").getByRole("button", { name: "Answer", exact: true }).click();
  await at("one").getByText("To allow it, read all of it first").waitFor();
  await settles(page);
  await page.keyboard.press("y");
  // The other line is folded: nobody has seen what it asks for.
  expect(await at("two").locator(".request").count()).toBe(0);
  await at("two").getByRole("button", { name: "Answer", exact: true }).click();
  await isRead(at("two"));
  await page.keyboard.press("y");
  await at("two").getByText("Sent; waiting").waitFor();
  expect(between.told.map(({ path }) => path)).toEqual(["/api/requests/req_2/decision"]);
});

test("what the daemon has only the beginning of is denied here, or allowed where it runs", async () => {
  const there = await shown([asking("one", asks('{"file_path":"/x","content":"aaaa', { cut: true }))]);
  const { page, at, between } = there;
  await at("one").getByText("It is too long to be shown whole.").waitFor();
  expect(await allow(at("one")).count()).toBe(0);
  await allowsNothing(there, at("one"));
  await picture(page, "cut");
  await accessible(page);
  await at("one").getByRole("button", { name: "Deny", exact: true }).click();
  await at("one").getByText("Sent; waiting").waitFor();
  expect(between.told).toHaveLength(1);
});

test.each([
  ["another request", { key: "req_r2", requestId: "r2" }],
  ["another command of the same request", { revision: "b" }],
])("a key or a click that was meant for what was there before does nothing: %s", async (_, more) => {
  const { page, at, between, say } = await shown([asking("one", asks({ command: "ls" }))]);
  await at("one").locator("a").first().focus();
  await isRead(at("one"));
  say(asking("one", asks({ command: "rm -rf ~" }, more)));
  // Pressed in the page, in the frame in which it changes: a busy machine would press too late.
  await page.waitForFunction(() => {
    const place = document.querySelector<HTMLElement>("[data-session=one]")!;
    if (!place.innerText.includes("rm -rf ~")) return false;
    place.dispatchEvent(new KeyboardEvent("keydown", { key: "y", bubbles: true }));
    place.dispatchEvent(new KeyboardEvent("keydown", { key: "n", bubbles: true }));
    const button = [...place.querySelectorAll("button")].find((each) => each.innerText.startsWith("Allow"))!;
    button.click();
    return button.getAttribute("aria-disabled") === "true";
  });
  expect(between.told).toEqual([]);
  await isRead(at("one"));
  await page.keyboard.press("y");
  await at("one").getByText("Sent; waiting").waitFor();
  expect(between.told).toHaveLength(1);
  expect(between.told[0]!.body).toMatchObject({ revision: "revision" in more ? "b" : "a" });
});

test("a field beside the command is on the card", async () => {
  const sly = asks({ command: "ls", script: "rm -rf ~\u202e" }, { tool: "mcp__run__it" });
  const { at } = await shown([asking("one", sly)]);
  expect(await at("one").locator(".beside").innerText()).toBe("script: rm -rf ~⟨U+202E⟩");
});
