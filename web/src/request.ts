/**
 * What a request shows to the one who must decide: read off the agent's own input. Pure.
 *
 * Each product spells its tools differently; what matters is the same: a command, a change of a
 * file, a question, a plan. What is not understood is shown whole, never left out.
 */

import { diff, type DiffLine, linesOf, readDiff } from "./diff";
import type { RequestView } from "./wire";

export type Shown =
  | { kind: "command"; command: string; reason?: string; folder?: string }
  | { kind: "change"; file?: string; lines: DiffLine[]; reason?: string }
  | { kind: "questions"; questions: Question[] }
  | { kind: "plan"; markdown: string }
  | { kind: "address"; address: string; reason?: string }
  | { kind: "text"; text: string }
  | { kind: "nothing" };

export interface Question {
  /** What an answer names it by; most have only their text. */
  id?: string;
  text: string;
  header?: string;
  options: Option[];
  several: boolean;
  /** The answer must not be seen. */
  secret?: true;
}

export interface Option {
  label: string;
  description?: string;
}

export function shown(request: RequestView): Shown {
  const input = fields(request.input);
  if (request.kind === "plan") return plan(request, input);
  if (request.kind === "question") return question(request, input);
  return permission(request, input);
}

type Fields = Readonly<Record<string, unknown>>;

function fields(value: unknown): Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}

/** The first of several spellings that is a text. */
function text(input: Fields, ...names: string[]): string | undefined {
  for (const name of names) {
    const value = input[name];
    if (typeof value === "string" && value !== "") return value;
  }
  return undefined;
}

function plan(request: RequestView, input: Fields): Shown {
  const markdown = text(input, "plan", "markdown", "content") ?? request.text;
  return markdown === undefined ? rest(request) : { kind: "plan", markdown };
}

function question(request: RequestView, input: Fields): Shown {
  const many = input["questions"];
  const asked = Array.isArray(many) ? many.map((each) => named(fields(each))) : [one(input)];
  const questions = asked.filter((each) => each.text !== "" || each.options.length > 0);
  if (questions.length > 0) return { kind: "questions", questions };
  return request.text === undefined
    ? rest(request)
    : { kind: "questions", questions: [{ text: request.text, options: [], several: false }] };
}

function named(input: Fields): Question {
  const id = text(input, "id");
  return id === undefined ? one(input) : { ...one(input), id };
}

function one(input: Fields): Question {
  const options = input["options"] ?? input["choices"] ?? input["suggest"];
  const header = text(input, "header");
  return {
    text: text(input, "question", "text", "message", "prompt") ?? "",
    ...(header === undefined ? {} : { header }),
    options: Array.isArray(options) ? options.flatMap(option) : [],
    several: input["multiSelect"] === true || input["multiple"] === true,
    ...(input["isSecret"] === true ? { secret: true } : {}),
  };
}

function option(value: unknown): Option[] {
  if (typeof value === "string") return [{ label: value }];
  const label = text(fields(value), "label", "title", "name", "answer", "value");
  const description = text(fields(value), "description", "detail");
  if (label === undefined) return [];
  return [description === undefined ? { label } : { label, description }];
}

function permission(request: RequestView, input: Fields): Shown {
  const said = text(input, "description", "reason", "justification") ?? request.text;
  const command = commandOf(input);
  // Some products repeat the command where others say why.
  const reason = said === undefined || said === command ? {} : { reason: said };
  if (command !== undefined) {
    const folder = text(input, "cwd", "workdir");
    return { kind: "command", command, ...reason, ...(folder === undefined ? {} : { folder }) };
  }
  const lines = changeOf(input);
  if (lines !== undefined) {
    const file = text(input, "file_path", "filePath", "filepath", "path", "notebook_path");
    return { kind: "change", lines, ...reason, ...(file === undefined ? {} : { file }) };
  }
  const address = text(input, "url", "uri", "query");
  if (address !== undefined) return { kind: "address", address, ...reason };
  return rest(request);
}

export function commandOf(input: Fields): string | undefined {
  const command = input["command"] ?? input["cmd"];
  if (Array.isArray(command)) {
    const parts = command.filter((part): part is string => typeof part === "string");
    // `bash -lc SCRIPT`: the script is what runs.
    if (parts.length === 3 && /^-l?c$/.test(parts[1]!)) return parts[2];
    return parts.join(" ");
  }
  return typeof command === "string" && command !== "" ? command : undefined;
}

function changeOf(input: Fields): DiffLine[] | undefined {
  const ready = text(input, "diff", "patch", "unified_diff", "unifiedDiff");
  if (ready !== undefined) return readDiff(ready);
  const edits = input["edits"];
  if (Array.isArray(edits)) {
    return edits.flatMap((edit, index): DiffLine[] => {
      const lines = replaced(fields(edit)) ?? [];
      return index === 0 ? lines : [{ mark: "gap", text: "" }, ...lines];
    });
  }
  const lines = replaced(input);
  if (lines !== undefined) return lines;
  const content = input["content"] ?? input["new_source"];
  return typeof content === "string"
    ? linesOf(content).map((line) => ({ mark: "added", text: line }))
    : undefined;
}

function replaced(input: Fields): DiffLine[] | undefined {
  const before = input["old_string"] ?? input["oldString"] ?? input["oldText"];
  const after = input["new_string"] ?? input["newString"] ?? input["newText"];
  if (typeof after !== "string") return undefined;
  return diff(typeof before === "string" ? before : "", after);
}

function rest(request: RequestView): Shown {
  if (request.input === undefined || request.input === null) {
    return request.text === undefined ? { kind: "nothing" } : { kind: "text", text: request.text };
  }
  const { input } = request;
  return { kind: "text", text: typeof input === "string" ? input : JSON.stringify(input, null, 2) };
}
