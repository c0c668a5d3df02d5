/**
 * What a request shows to the one who must decide: read off the agent's own input. Pure.
 *
 * Each product spells its tools differently; what matters is the same: a command, a change of a
 * file, a question, a plan. What is not understood is shown whole, never left out.
 */

import { changesOf, patchOf, wordsOf } from "./change";
import { type Fields, fields, text } from "./fields";
import type { FileChange } from "./patch";
import type { RequestView } from "./wire";

export type Shown =
  | { kind: "command"; command: string; reason?: string; folder?: string }
  | { kind: "change"; files: FileChange[]; reason?: string }
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
  const input = told(request);
  if (request.kind === "plan") return plan(request, input);
  if (request.kind === "question") return question(request, input);
  return permission(request, input);
}

/** The fields that say what it is about: some products wrap them. */
function told({ kind, tool, input }: RequestView): Fields {
  if (Array.isArray(input)) return kind === "question" ? { questions: input } : { content: input };
  // In its files Codex has the patch alone.
  if (typeof input === "string" && tool === "apply_patch") return { command: input };
  const all = fields(input);
  // OpenCode's words for its rules stand around what the tool was given.
  const isWrapped = all["permission"] !== undefined && all["patterns"] !== undefined;
  return isWrapped ? fields(all["metadata"]) : all;
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
  const said =
    text(input, "description", "reason", "justification") ?? wordsOf(input["content"]) ?? request.text;
  // Some products repeat the command or the file where others say why.
  const reason = (...shown: (string | undefined)[]) =>
    said === undefined || shown.some((each) => each === said || each?.endsWith(`/${said}`))
      ? {}
      : { reason: said };
  const change = (files: FileChange[]): Shown => {
    return { kind: "change", files, ...reason(text(input, "command"), ...files.map(({ file }) => file)) };
  };
  const patch = patchOf(request.tool, input);
  if (patch !== undefined) return change(patch);
  const command = commandOf(input) ?? titleOfCommand(request, input);
  if (command !== undefined) {
    const folder = text(input, "cwd", "workdir", "folder");
    return { kind: "command", command, ...reason(command), ...(folder === undefined ? {} : { folder }) };
  }
  const files = changesOf(input);
  if (files !== undefined) return change(files);
  const address = text(input, "url", "uri", "query");
  if (address !== undefined) return { kind: "address", address, ...reason() };
  return rest(request);
}

/** An ACP agent that gives no input has the command it would run as its call's title. */
function titleOfCommand({ tool, text: title }: RequestView, input: Fields): string | undefined {
  if (tool !== "execute" || !("content" in input)) return undefined;
  return text(input, "title") ?? title;
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

function rest(request: RequestView): Shown {
  if (isEmpty(request.input)) {
    return request.text === undefined ? { kind: "nothing" } : { kind: "text", text: request.text };
  }
  const { input } = request;
  return { kind: "text", text: typeof input === "string" ? input : JSON.stringify(input, null, 2) };
}

/** Nothing that anybody could read. */
function isEmpty(input: unknown): boolean {
  if (input === undefined || input === null) return true;
  return typeof input === "object" && Object.keys(input).length === 0;
}
