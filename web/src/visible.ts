/**
 * Text as it may be shown: characters that hide or move others become marks, `⟨U+202E⟩`. Pure.
 *
 * spec/visible-text.md lists the characters; crates/session/src/visible.rs is the daemon's half.
 * Only what is drawn passes through here: what is sent stays as it is.
 */

/** `code`: commands, paths, inputs, diffs. `prose`: titles, messages, questions, plans. */
export type Reading = "code" | "prose";

/** A piece of a text: as it is, or a mark in the place of what would not be seen. */
export interface Piece {
  text: string;
  mark?: true;
}

/** More than these in a row are one mark: an indentation of code is seldom deeper. */
const SPACES_MAX = 40;

/** More than these in a row are one mark: paragraphs and functions have fewer between them. */
export const BLANK_LINES_MAX = 3;

/** The text in pieces. */
export function visible(whole: string, reading: Reading): Piece[] {
  const text = reading === "prose" ? whole.replaceAll("\r\n", "\n") : whole;
  const pieces: Piece[] = [];
  let plain = "";
  const mark = (said: string) => {
    if (plain !== "") pieces.push({ text: plain });
    plain = "";
    pieces.push({ text: `⟨${said}⟩`, mark: true });
  };
  let before = "\n";
  for (let at = 0; at < text.length;) {
    const letter = String.fromCodePoint(text.codePointAt(at)!);
    const lines = before === "\n" ? runAt(BLANK_LINES, text, at) : "";
    const spaces = letter === " " || letter === "\t" ? runAt(SPACES, text, at) : "";
    let taken = letter;
    if (lines !== "") {
      mark(`${lines.split("\n").length - 1} blank lines`);
      plain = "\n";
      taken = lines;
    } else if (spaces !== "") {
      mark(`${spaces.length} ${nameOfSpaces(spaces)}`);
      taken = spaces;
    } else if (isHidden(before, letter, reading)) {
      while (text.startsWith(letter, at + taken.length)) taken += letter;
      const count = taken.length / letter.length;
      mark(`U+${hex(letter)}${count > 1 ? ` ×${count}` : ""}`);
    } else {
      plain += letter;
    }
    before = lastOf(taken);
    at += taken.length;
  }
  if (plain !== "") pieces.push({ text: plain });
  return pieces;
}

/** The same as one text, for places that know no marks. */
export const visibleText = (text: string, reading: Reading): string =>
  visible(text, reading)
    .map((piece) => piece.text)
    .join("");

/** Line by line; the end of the last line begins no other. */
export function visibleLines(text: string, reading: Reading): Piece[][] {
  const lines: Piece[][] = [[]];
  for (const piece of visible(text, reading)) {
    const [first, ...rest] = piece.mark ? [piece.text] : piece.text.split("\n");
    if (first !== "") lines.at(-1)!.push({ ...piece, text: first! });
    for (const line of rest) lines.push(line === "" ? [] : [{ text: line }]);
  }
  if (lines.at(-1)!.length === 0) lines.pop();
  return lines;
}

/** Whether it looks like what it is: nothing in it is hidden, and nothing is folded. */
export const isPlain = (text: string, reading: Reading): boolean =>
  visible(text, reading).every((piece) => piece.mark === undefined);

/** Whether a character is shown as a mark. The one before it matters to the style of an emoji. */
export function isHidden(before: string, letter: string, reading: Reading): boolean {
  const code = letter.codePointAt(0)!;
  let [low, high] = [0, HIDDEN.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (HIDDEN[middle]![1] < code) low = middle + 1;
    else high = middle;
  }
  const row = HIDDEN[low]!;
  if (code < row[0] || code > row[1]) return false;
  if (row[2] === "everywhere") return true;
  return reading === "code" && (row[2] === "code" || !PICTOGRAPH.test(before));
}

const PICTOGRAPH = /^[\u{2190}-\u{2bff}\u{1f000}-\u{1faff}]$/u;
const BLANK_LINES = new RegExp(`(?:[ \\t]*\\n){${BLANK_LINES_MAX + 1},}`, "y");
const SPACES = new RegExp(`[ \\t]{${SPACES_MAX + 1},}`, "y");

function runAt(run: RegExp, text: string, at: number): string {
  run.lastIndex = at;
  return run.exec(text)?.[0] ?? "";
}

function nameOfSpaces(run: string): string {
  if (!run.includes("\t")) return "spaces";
  return run.includes(" ") ? "spaces and tabs" : "tabs";
}

const hex = (letter: string) => letter.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0");
const lastOf = (text: string) => Array.from(text.slice(-2)).at(-1) ?? "\n";

type Place = "everywhere" | "code" | "code unless pictograph";

/** First, last, and where they are marks; in order. */
const HIDDEN: readonly (readonly [first: number, last: number, place: Place])[] = [
  [0x0000, 0x0008, "everywhere"],
  [0x000b, 0x001f, "everywhere"],
  [0x007f, 0x009f, "everywhere"],
  [0x00a0, 0x00a0, "code"],
  [0x00ad, 0x00ad, "code"],
  [0x034f, 0x034f, "code"],
  [0x061c, 0x061c, "code"],
  [0x070f, 0x070f, "code"],
  [0x115f, 0x1160, "everywhere"],
  [0x1680, 0x1680, "code"],
  [0x17b4, 0x17b5, "code"],
  [0x180b, 0x180f, "code"],
  [0x2000, 0x200f, "code"],
  [0x2028, 0x202e, "everywhere"],
  [0x202f, 0x202f, "code"],
  [0x205f, 0x205f, "code"],
  [0x2060, 0x206f, "everywhere"],
  [0x27e8, 0x27e8, "code"],
  [0x2800, 0x2800, "code"],
  [0x3000, 0x3000, "code"],
  [0x3164, 0x3164, "everywhere"],
  [0xd800, 0xdfff, "everywhere"],
  [0xe000, 0xf8ff, "code"],
  [0xfdd0, 0xfdef, "everywhere"],
  [0xfe00, 0xfe0d, "code"],
  [0xfe0e, 0xfe0f, "code unless pictograph"],
  [0xfeff, 0xfeff, "everywhere"],
  [0xffa0, 0xffa0, "everywhere"],
  [0xfff0, 0xfffb, "everywhere"],
  [0xfffc, 0xfffc, "code"],
  [0xfffe, 0xffff, "everywhere"],
  [0x13430, 0x1345f, "everywhere"],
  [0x1bca0, 0x1bca3, "everywhere"],
  [0x1d159, 0x1d159, "everywhere"],
  [0x1d173, 0x1d17a, "everywhere"],
  [0xe0000, 0xe0fff, "everywhere"],
  [0xf0000, 0x10ffff, "everywhere"],
];
