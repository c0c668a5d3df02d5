import { readdirSync, readFileSync } from "node:fs";

import { expect, test } from "vitest";

import { diff } from "../../src/diff";
import { DIFF_LINES_MAX, MARKDOWN_CHARS_MAX } from "../../src/limits";
import { blocks, inline } from "../../src/markdown";

test("markdown becomes blocks", () => {
  const text =
    "# Plan\n\nTwo lines\nof text\n1. First\n   - [x] done\n> said\n---\n```rust\nlet x = 1;\n\n```\n| a | b |\n|---|---|\n| 1 | 2 |\n";
  const plain = (words: string) => [{ type: "text", text: words }];
  expect(blocks(text)).toEqual([
    { type: "heading", level: 1, parts: plain("Plan") },
    { type: "paragraph", parts: plain("Two lines\nof text") },
    { type: "item", depth: 0, marker: "1.", parts: plain("First") },
    { type: "item", depth: 1, marker: "•", done: true, parts: plain("done") },
    { type: "quote", parts: plain("said") },
    { type: "rule" },
    { type: "code", text: "let x = 1;\n" },
    {
      type: "table",
      rows: [
        [plain("a"), plain("b")],
        [plain("1"), plain("2")],
      ],
    },
  ]);
});

test("marks within a line", () => {
  expect(inline("a **b** `c*d` *e* snake_case 2 * 3 * 4")).toEqual([
    { type: "text", text: "a " },
    { type: "strong", parts: [{ type: "text", text: "b" }] },
    { type: "text", text: " " },
    { type: "code", text: "c*d" },
    { type: "text", text: " " },
    { type: "emphasis", parts: [{ type: "text", text: "e" }] },
    { type: "text", text: " snake_case 2 * 3 * 4" },
  ]);
  expect(inline("See https://x.y/z. [n](https://a.b)")).toEqual([
    { type: "text", text: "See " },
    { type: "link", address: "https://x.y/z", text: "https://x.y/z" },
    { type: "text", text: ". " },
    { type: "link", address: "https://a.b", text: "n" },
  ]);
});

test("neither HTML nor a script's address becomes more than text", () => {
  for (const text of [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[x](javascript:alert(1))",
    "[x](data:text/html,1)",
  ]) {
    expect(blocks(text)).toEqual([{ type: "paragraph", parts: [{ type: "text", text }] }]);
  }
});

test("text that is made to be slow is read, and nothing of it is lost", () => {
  for (const piece of ["**a ", "*a ", "`", "[a](", "| ", "> ", "- "]) {
    expect(blocks(piece.repeat(MARKDOWN_CHARS_MAX / piece.length)).length).toBeGreaterThan(0);
  }
  const long = "x".repeat(MARKDOWN_CHARS_MAX) + "the end";
  expect(blocks(long).at(-1)).toEqual({ type: "code", text: "the end" });
});

test("a change too long to compare is all old and all new", () => {
  const many = (word: string) =>
    Array.from({ length: DIFF_LINES_MAX + 1 }, (_, index) => `${word} ${index}`).join("\n");
  const marks = diff(many("a"), many("b")).map((line) => line.mark);
  expect(marks.slice(0, DIFF_LINES_MAX + 1).every((mark) => mark === "removed")).toBe(true);
  expect(marks.length).toBe(2 * (DIFF_LINES_MAX + 1));
});

test("no source of the page writes HTML", () => {
  const folder = new URL("../../src/", import.meta.url);
  const sources = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((file) =>
    /\.(tsx?|js)$/.test(file),
  );
  for (const file of sources) {
    const text = readFileSync(new URL(file, folder), "utf8");
    expect(text, file).not.toMatch(
      /dangerouslySetInnerHTML|innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(/,
    );
  }
  expect(sources.length).toBeGreaterThan(40);
});
