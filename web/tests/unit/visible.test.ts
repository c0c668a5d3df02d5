/** spec/visible-text.md beside the page's half of it: every character, and every example. */

import { readFileSync } from "node:fs";
import { join } from "node:path";

import { expect, test } from "vitest";

import { isHidden, isPlain, visible, visibleLines, visibleText } from "../../src/visible";

const SPEC = readFileSync(join(import.meta.dirname, "../../../spec/visible-text.md"), "utf8");

/** The rows of the table below a heading, without their head. */
function rows(heading: string): string[][] {
  const section = SPEC.split(`## ${heading}\n`)[1]!.split("\n## ")[0]!;
  const lines = section.split("\n").filter((line) => line.startsWith("|"));
  return lines.slice(2).map((line) =>
    line
      .replace(/^\|\s*|\s*\|$/g, "")
      .split(" | ")
      .map((cell) => cell.trim()),
  );
}

test("every character is a mark where the table says so, and nowhere else", () => {
  const UNLESS = "mark, unless a pictograph is before it";
  const says = Array<string>(0x110000).fill("");
  const table = rows("Characters");
  expect(table.length).toBeGreaterThan(30);
  for (const [first, last, , code, prose] of table) {
    const marks = [code !== "as it is", code !== "as it is" && code !== UNLESS, prose === "mark"];
    says.fill(marks.map(Number).join(""), parseInt(first!, 16), parseInt(last!, 16) + 1);
  }
  const wrong: string[] = [];
  for (let code = 0; code <= 0x10ffff; code += 1) {
    const letter = String.fromCodePoint(code);
    const does =
      `${Number(isHidden("a", letter, "code"))}${Number(isHidden("\u26a0", letter, "code"))}` +
      `${Number(isHidden("a", letter, "prose"))}`;
    if (does !== (says[code] || "000")) wrong.push(code.toString(16));
  }
  expect(wrong).toEqual([]);
});

test("every example is shown as the table says", () => {
  const examples = rows("Examples").map((row) =>
    row.map((cell) => JSON.parse(cell.replace(/^`|`$/g, "")) as string),
  );
  expect(examples.length).toBeGreaterThanOrEqual(20);
  for (const [text, code, prose] of examples) {
    expect(visibleText(text!, "code")).toBe(code);
    expect(visibleText(text!, "prose")).toBe(prose);
  }
});

test("what is a mark is known apart from a text that looks like one", () => {
  expect(visible("a\u202eb", "prose")).toEqual([
    { text: "a" },
    { text: "⟨U+202E⟩", mark: true },
    { text: "b" },
  ]);
  expect(visible("⟨U+202E⟩", "prose")).toEqual([{ text: "⟨U+202E⟩" }]);
  expect(visible("\ud800x", "prose")).toEqual([{ text: "⟨U+D800⟩", mark: true }, { text: "x" }]);
  expect([isPlain("ls -l", "code"), isPlain("ls\u00a0-l", "code")]).toEqual([true, false]);
});

test("lines keep their marks", () => {
  expect(visibleLines("a\n\n\n\n\nb\u202e\n", "code")).toEqual([
    [{ text: "a" }],
    [{ text: "⟨4 blank lines⟩", mark: true }],
    [{ text: "b" }, { text: "⟨U+202E⟩", mark: true }],
  ]);
  expect(visibleLines("", "code")).toEqual([]);
  expect(visibleLines("a\n\nb", "code")).toEqual([[{ text: "a" }], [], [{ text: "b" }]]);
});
