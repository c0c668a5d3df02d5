/**
 * The part of Markdown that agents write, read into blocks. Pure, and without HTML: a tag is text
 * like any other, and only `http` and `https` addresses become links.
 */

import { MARKDOWN_CHARS_MAX } from "./limits";

export type Inline =
  | { type: "text"; text: string }
  | { type: "code"; text: string }
  | { type: "strong"; parts: Inline[] }
  | { type: "emphasis"; parts: Inline[] }
  | { type: "link"; address: string; text: string };

export type Block =
  | { type: "heading"; level: number; parts: Inline[] }
  | { type: "paragraph"; parts: Inline[] }
  | { type: "item"; depth: number; marker: string; done?: boolean; parts: Inline[] }
  | { type: "quote"; parts: Inline[] }
  | { type: "code"; text: string }
  | { type: "table"; rows: Inline[][][] }
  | { type: "rule" };

export function blocks(markdown: string): Block[] {
  const read = markdown.slice(0, MARKDOWN_CHARS_MAX);
  const found: Block[] = [];
  const lines = read.replace(/\r\n?/g, "\n").split("\n");
  let paragraph: string[] = [];
  const finish = () => {
    if (paragraph.length > 0) found.push({ type: "paragraph", parts: inline(paragraph.join("\n")) });
    paragraph = [];
  };
  for (let i = 0; i < lines.length; i += 1) {
    const line = lines[i]!;
    const fence = /^\s*(```+|~~~+)/.exec(line)?.[1];
    if (fence !== undefined) {
      finish();
      const end = endOf(lines, i + 1, (next) => next.trim().startsWith(fence));
      found.push({ type: "code", text: lines.slice(i + 1, end).join("\n") });
      i = end;
      continue;
    }
    if (line.trimStart().startsWith("|")) {
      finish();
      const end = endOf(lines, i, (next) => !next.trimStart().startsWith("|"));
      found.push({ type: "table", rows: lines.slice(i, end).filter(isRow).map(cells) });
      i = end - 1;
      continue;
    }
    const block = single(line);
    if (block) {
      finish();
      found.push(block);
    } else if (line.trim() === "") finish();
    else paragraph.push(line.trim());
  }
  finish();
  if (read.length < markdown.length) {
    found.push({ type: "code", text: markdown.slice(MARKDOWN_CHARS_MAX) });
  }
  return found;
}

/** The line of dashes below a table's head is no row. */
const isRow = (line: string) => !/^[\s|:-]+$/.test(line);

function cells(line: string): Inline[][] {
  const inner = line.trim().replace(/^\|/, "").replace(/\|$/, "");
  return inner.split("|").map((cell) => inline(cell.trim()));
}

function endOf(lines: readonly string[], from: number, ends: (line: string) => boolean): number {
  const offset = lines.slice(from).findIndex(ends);
  return offset < 0 ? lines.length : from + offset;
}

/** A block that one line makes. */
function single(line: string): Block | undefined {
  const heading = /^(#{1,6})\s+(.*)$/.exec(line);
  if (heading) return { type: "heading", level: heading[1]!.length, parts: inline(heading[2]!) };
  if (/^\s*([-*_])(\s*\1){2,}\s*$/.test(line)) return { type: "rule" };
  const item = /^(\s*)([-*+]|\d{1,4}[.)])\s+(?:\[([ xX])\]\s+)?(.*)$/.exec(line);
  if (item) {
    const depth = Math.min(Math.floor(item[1]!.replace(/\t/g, "  ").length / 2), 6);
    const marker = /\d/.test(item[2]!) ? item[2]! : "•";
    const done = item[3] === undefined ? {} : { done: item[3] !== " " };
    return { type: "item", depth, marker, ...done, parts: inline(item[4]!) };
  }
  const quote = /^\s*>\s?(.*)$/.exec(line);
  return quote ? { type: "quote", parts: inline(quote[1]!) } : undefined;
}

const MARKS =
  /(`+)([^`]|[^`][\s\S]{0,500}?[^`])\1(?!`)|\*\*(\S|\S[\s\S]{0,500}?\S)\*\*|(?<![\w*])\*([^\s*]|[^\s*][^*]{0,500}?[^\s*])\*(?![\w*])|\[([^\]\n]{1,300})\]\((https?:\/\/[^\s)]{1,2000})\)|(https?:\/\/[^\s<>"'`)\]]{1,2000}[^\s<>"'`)\].,;:!?])/g;

export function inline(text: string): Inline[] {
  const parts: Inline[] = [];
  let end = 0;
  for (const match of text.matchAll(MARKS)) {
    if (match.index > end) parts.push({ type: "text", text: text.slice(end, match.index) });
    end = match.index + match[0].length;
    const [, , code, strong, emphasis, name, address, bare] = match;
    if (code !== undefined) parts.push({ type: "code", text: code });
    else if (strong !== undefined) parts.push({ type: "strong", parts: inline(strong) });
    else if (emphasis !== undefined) parts.push({ type: "emphasis", parts: inline(emphasis) });
    else if (address !== undefined) parts.push({ type: "link", address, text: name! });
    else if (bare !== undefined) parts.push({ type: "link", address: bare, text: bare });
  }
  if (end < text.length) parts.push({ type: "text", text: text.slice(end) });
  return parts;
}
