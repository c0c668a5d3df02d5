/**
 * What a request shows to the one who must decide: read off the agent's own input. Pure.
 *
 * Each product spells its tools differently; what matters is the same: a command, a change of a
 * file, a question, a plan. What is not understood is shown whole, never left out, and so is every
 * field beside the ones that are understood: a tool may run by any of them.
 */

import { changesOf, patchOf, wordsOf } from "./change";
import { type Fields, fields, text } from "./fields";
import type { FileChange } from "./patch";
import type { RequestView } from "./wire";

export type Shown =
  | { kind: "command"; command: string; reason?: string; folder?: string; beside?: string }
  | { kind: "change"; files: FileChange[]; reason?: string; beside?: string }
  | { kind: "questions"; questions: Question[] }
  | { kind: "plan"; markdown: string; beside?: string }
  | { kind: "address"; address: string; reason?: string; beside?: string }
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
  if (markdown === undefined) return rest(request);
  return { kind: "plan", markdown, ...beside(request, input, [markdown]) };
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
  const words = text(input, "description", "reason", "justification");
  const said = words ?? wordsOf(input["content"]) ?? request.text;
  const told = words === undefined ? ["content"] : [];
  // Some products repeat the command or the file where others say why.
  const reason = (...shown: (string | undefined)[]) =>
    said === undefined || shown.some((each) => each === said || each?.endsWith(`/${said}`))
      ? {}
      : { reason: said };
  const change = (files: FileChange[], ...used: string[]): Shown => ({
    kind: "change",
    files,
    ...reason(text(input, "command"), ...files.map(({ file }) => file)),
    ...beside(request, input, [said, ...files.map(({ file }) => file)], [...CHANGE_FIELDS, ...used]),
  });
  const patch = patchOf(request.tool, input);
  if (patch !== undefined) return change(patch, "command");
  const command = commandOf(input) ?? titleOfCommand(request, input);
  if (command !== undefined) {
    const folder = text(input, "cwd", "workdir", "folder");
    return {
      kind: "command",
      command,
      ...reason(command),
      ...(folder === undefined ? {} : { folder }),
      ...beside(
        request,
        input,
        [folder, said],
        [...told, input["command"] === undefined ? "cmd" : "command"],
      ),
    };
  }
  const files = changesOf(input);
  if (files !== undefined) return change(files);
  const address = text(input, "url", "uri", "query");
  if (address !== undefined) {
    return { kind: "address", address, ...reason(), ...beside(request, input, [address, said], told) };
  }
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
    if (!command.every((part) => typeof part === "string")) return JSON.stringify(command);
    // `bash -lc SCRIPT`: the script is what runs. Another program by the name of `-c` is no shell.
    const [program, flag, script] = command as string[];
    if (command.length === 3 && SHELL.test(program!) && /^-l?c$/.test(flag!)) return script;
    return (command as string[]).map(quoted).join(" ");
  }
  return typeof command === "string" && command !== "" ? command : undefined;
}

const SHELL = /^(\/(usr\/)?bin\/)?(ba|da|z)?sh$/;

/** One word to a shell, so that nobody takes it for two. */
const quoted = (word: string) =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;

/** Fields of a change that its lines and the name of its file are made of. */
const CHANGE_FIELDS = [
  ...["changes", "content", "new_source", "edits", "diff", "patch", "unified_diff", "unifiedDiff"],
  ...["old_string", "oldString", "oldText", "old_text", "new_string", "newString", "newText", "new_text"],
  "filediff",
];

/**
 * An agent's own book-keeping beside what it runs: ids, times, and its own reading of the same
 * command. A tool of somebody else's may mean anything by the same names.
 */
const BOOK_KEEPING = [
  ...["callId", "call_id", "itemId", "item_id", "turnId", "turn_id", "threadId", "thread_id", "approvalId"],
  ...["environmentId", "startedAtMs", "started_at_ms", "kind", "type", "tool", "title", "rootCommand"],
  ...["availableDecisions", "available_decisions", "commandActions", "parsed_cmd"],
  ...["proposedExecpolicyAmendment", "proposed_execpolicy_amendment"],
  ...["operationIsLocatedInWorkspace", "startLineNumbers", "planFilePath"],
];

/** The fields that nothing else on the card shows, one on a line. */
function beside(
  { tool }: RequestView,
  input: Fields,
  shown: readonly (string | undefined)[],
  used: readonly string[] = [],
): { beside?: string } {
  const known = new Set([...used, ...(/^mcp/.test(tool ?? "") ? [] : BOOK_KEEPING)]);
  const lines = Object.entries(input).flatMap(([name, value]) => {
    const isShown = typeof value === "string" && (shown.includes(value) || value === "");
    if (known.has(name) || isShown || isEmpty(value)) return [];
    return [`${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`];
  });
  return lines.length === 0 ? {} : { beside: lines.join("\n") };
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
