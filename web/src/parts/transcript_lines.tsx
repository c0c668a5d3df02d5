import { ChevronRight, CircleX, User } from "lucide-react";
import { memo } from "react";

import { clock } from "../amount";
import { linesOf } from "../diff";
import { TEXT_CHARS_MAX } from "../limits";
import { shown } from "../request";
import type { ToolUse, TranscriptEntry } from "../wire";
import { FileChanged } from "./file_changed";
import { Folded } from "./folded";
import { MarkdownText } from "./markdown_text";
import { Visible } from "./visible";

/** What was said and done, oldest first. */
export function TranscriptLines({ entries }: { entries: readonly TranscriptEntry[] }) {
  return (
    <ol className="transcript-lines">
      {entries.map((entry) => (
        <Line key={entry.id} entry={entry} />
      ))}
    </ol>
  );
}

const Line = memo(function Line({ entry }: { entry: TranscriptEntry }) {
  return (
    <li className="entry" data-role={entry.role}>
      <p className="entry-head">
        {entry.role === "user" && <User aria-hidden="true" size={12} />}
        <span>{entry.agent === undefined ? ROLES[entry.role] : `${ROLES[entry.role]}, ${entry.agent}`}</span>
        {entry.at !== undefined && <time dateTime={new Date(entry.at).toISOString()}>{clock(entry.at)}</time>}
      </p>
      {entry.text !== undefined && entry.text !== "" && <Said entry={entry} text={entry.text} />}
      {entry.tool && <Tool tool={entry.tool} />}
    </li>
  );
});

const ROLES: Readonly<Record<TranscriptEntry["role"], string>> = {
  user: "You",
  assistant: "Agent",
  tool: "Tool",
  system: "System",
};

function Said({ entry, text }: { entry: TranscriptEntry; text: string }) {
  return entry.role === "assistant" ? <MarkdownText text={text} /> : <Plain text={text} className="said" />;
}

/** Long text in pieces, so that a megabyte is no megabyte of document. */
export function Plain({ text, className }: { text: string; className: string }) {
  return (
    <Folded all={pieces(text)} shownMax={1} noun="pieces of text">
      {(parts) => (
        <pre className={className}>
          <Visible text={parts.join("")} reading={/\bcode\b/.test(className) ? "code" : "prose"} />
        </pre>
      )}
    </Folded>
  );
}

function pieces(text: string): string[] {
  const found: string[] = [];
  for (let at = 0; at < text.length; at += TEXT_CHARS_MAX) found.push(text.slice(at, at + TEXT_CHARS_MAX));
  return found;
}

function Tool({ tool }: { tool: ToolUse }) {
  return (
    <details className="tool" data-failed={tool.failed || undefined}>
      <summary>
        <ChevronRight aria-hidden="true" size={14} className="tool-arrow" />
        <span className="tool-name">
          <Visible text={tool.name} reading="code" />
        </span>
        <span className="tool-brief">
          <Visible text={toolBrief(tool.name, tool.input)} reading="code" />
        </span>
        {tool.failed && (
          <span className="tool-failed">
            <CircleX aria-hidden="true" size={12} /> failed
          </span>
        )}
      </summary>
      <ToolShown name={tool.name} input={tool.input} />
      {tool.output !== undefined && <Plain text={asText(tool.output)} className="code tool-output" />}
    </details>
  );
}

const shownOf = (tool: string, input: unknown) =>
  shown({ requestId: "", kind: "permission", tool, input, since: 0, takesWords: false, takesChanges: false });

/** What a call is about, on one line. */
export function toolBrief(name: string, input: unknown): string {
  const what = shownOf(name, input);
  if (what.kind === "command") return linesOf(what.command)[0] ?? "";
  return what.kind === "change" ? what.files.flatMap(({ file }) => file ?? []).join(", ") : brief(input);
}

function brief(input: unknown): string {
  if (typeof input !== "object" || input === null || Array.isArray(input))
    return linesOf(asText(input))[0] ?? "";
  const texts = Object.values(input).filter((value) => typeof value === "string");
  return linesOf(texts.join(" "))[0] ?? "";
}

/** What a call is about, whole: a command, a change, or what it was given. */
export function ToolShown({ name, input }: { name: string; input: unknown }) {
  const what = shownOf(name, input);
  if (what.kind === "change")
    return what.files.map((each, index) => <FileChanged key={index} change={each} />);
  const text = what.kind === "command" ? what.command : asText(input);
  return text === "" || text === "{}" ? null : <Plain text={text} className="code" />;
}

function asText(value: unknown): string {
  if (value === undefined || value === null) return "";
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}
