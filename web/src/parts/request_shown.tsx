import { useMemo } from "react";

import { linesOf } from "../diff";
import { REQUEST_FILES_MAX, REQUEST_LINES_MAX } from "../limits";
import { type Question, shown } from "../request";
import type { RequestView } from "../wire";
import { FileChanged } from "./file_changed";
import { Folded } from "./folded";
import { MarkdownText } from "./markdown_text";

/** What an agent waits for, whole: nobody decides on half a command. */
export function RequestShown({ request }: { request: RequestView }) {
  const what = useMemo(() => shown(request), [request]);
  switch (what.kind) {
    case "command":
      return (
        <Frame request={request} {...(what.reason === undefined ? {} : { reason: what.reason })}>
          <Code text={what.command} className="code command" />
          {what.folder !== undefined && <p className="request-note">in {what.folder}</p>}
        </Frame>
      );
    case "change":
      return (
        <Frame request={request} {...(what.reason === undefined ? {} : { reason: what.reason })}>
          <Folded all={what.files} shownMax={REQUEST_FILES_MAX} noun="files">
            {(files) => files.map((each, index) => <FileChanged key={index} change={each} />)}
          </Folded>
        </Frame>
      );
    case "questions":
      return (
        <Frame request={request}>
          {what.questions.map((question, index) => (
            <QuestionShown key={index} question={question} />
          ))}
        </Frame>
      );
    case "plan":
      return (
        <Frame request={request}>
          <div className="plan" tabIndex={0} role="region" aria-label="Plan">
            <MarkdownText text={what.markdown} />
          </div>
        </Frame>
      );
    case "address":
      return (
        <Frame request={request} {...(what.reason === undefined ? {} : { reason: what.reason })}>
          <Code text={what.address} className="code" />
        </Frame>
      );
    case "text":
      return (
        <Frame request={request}>
          <Code text={what.text} className="code" />
        </Frame>
      );
    case "nothing":
      return null;
  }
}

interface FrameProps {
  request: RequestView;
  reason?: string;
  children: React.ReactNode;
}

function Frame({ request, reason, children }: FrameProps) {
  return (
    <div className="request" data-kind={request.kind} data-request={request.requestId}>
      {request.agent !== undefined && <p className="request-note">asked by subagent {request.agent}</p>}
      {request.kind === "permission" && request.tool !== undefined && (
        <p className="request-tool">{request.tool}</p>
      )}
      {reason !== undefined && <p className="request-reason">{reason}</p>}
      {children}
    </div>
  );
}

function Code({ text, className }: { text: string; className: string }) {
  return (
    <Folded all={linesOf(text)} shownMax={REQUEST_LINES_MAX} noun="lines">
      {(lines) => (
        <pre className={className} tabIndex={lines.length > REQUEST_LINES_MAX + 1 ? 0 : undefined}>
          {lines.join("\n")}
        </pre>
      )}
    </Folded>
  );
}

function QuestionShown({ question }: { question: Question }) {
  return (
    <div className="question">
      {question.text !== "" && <p className="question-text">{question.text}</p>}
      {question.options.length > 0 && (
        <ol className="options" aria-label={question.several ? "Options, several may be chosen" : "Options"}>
          {question.options.map((option, index) => (
            <li key={index}>
              <span className="option-label">{option.label}</span>
              {option.description !== undefined && <span className="option-note">{option.description}</span>}
            </li>
          ))}
        </ol>
      )}
    </div>
  );
}
