import { useMemo, useRef } from "react";

import { REQUEST_FILES_MAX, REQUEST_LINES_MAX } from "../limits";
import { type Option, type Question, shown } from "../request";
import { visibleLines } from "../visible";
import type { RequestView } from "../wire";
import { FileChanged } from "./file_changed";
import { Folded } from "./folded";
import { MarkdownText } from "./markdown_text";
import { useReading } from "./use_reading";
import { Pieces, Visible } from "./visible";

/** What an agent waits for, whole: nobody decides on half a command. */
export function RequestShown({ request }: { request: RequestView }) {
  const what = useMemo(() => shown(request), [request]);
  const place = useRef<HTMLDivElement>(null);
  useReading(request, place);
  const reason = "reason" in what ? what.reason : undefined;
  return (
    <div className="request" data-kind={request.kind} data-request={request.requestId} ref={place}>
      {request.agent !== undefined && (
        <p className="request-note">
          asked by subagent <Visible text={request.agent} />
        </p>
      )}
      {request.kind === "permission" && request.tool !== undefined && (
        <p className="request-tool">
          <Visible text={request.tool} reading="code" />
        </p>
      )}
      {reason !== undefined && (
        <p className="request-reason">
          <Visible text={reason} />
        </p>
      )}
      <Asked what={what} />
      {"beside" in what && what.beside !== undefined && <Code text={what.beside} className="code beside" />}
      {request.cut === true && <p className="request-note">Only the beginning is known here.</p>}
    </div>
  );
}

function Asked({ what }: { what: ReturnType<typeof shown> }) {
  switch (what.kind) {
    case "command":
      return (
        <>
          <Code text={what.command} className="code command" />
          {what.folder !== undefined && (
            <p className="request-note">
              in <Visible text={what.folder} reading="code" />
            </p>
          )}
        </>
      );
    case "change":
      return (
        <Folded all={what.files} shownMax={REQUEST_FILES_MAX} noun="files">
          {(files) => files.map((each, index) => <FileChanged key={index} change={each} />)}
        </Folded>
      );
    case "questions":
      return what.questions.map((question, index) => <QuestionShown key={index} question={question} />);
    case "plan":
      return (
        <div className="plan" tabIndex={0} role="region" aria-label="Plan">
          <div data-read>
            <MarkdownText text={what.markdown} />
          </div>
        </div>
      );
    case "address":
      return <Code text={what.address} className="code" />;
    case "text":
      return <Code text={what.text} className="code" />;
    case "nothing":
      return <p className="request-note">The agent did not say what it would do.</p>;
  }
}

function Code({ text, className }: { text: string; className: string }) {
  const lines = useMemo(() => visibleLines(text, "code"), [text]);
  return (
    <Folded all={lines} shownMax={REQUEST_LINES_MAX} noun="lines">
      {(some) => (
        <pre className={className} tabIndex={some.length > REQUEST_LINES_MAX + 1 ? 0 : undefined}>
          <span className="code-lines" data-read>
            {some.map((pieces, index) => (
              <span key={index}>
                <Pieces pieces={pieces} />
                {index < some.length - 1 && "\n"}
              </span>
            ))}
          </span>
        </pre>
      )}
    </Folded>
  );
}

function QuestionShown({ question }: { question: Question }) {
  return (
    <div className="question">
      {question.text !== "" && (
        <p className="question-text">
          <Visible text={question.text} />
        </p>
      )}
      {question.options.length > 0 && (
        <ol className="options" aria-label={question.several ? "Options, several may be chosen" : "Options"}>
          {question.options.map((option, index) => (
            <li key={index}>
              <OptionText option={option} />
            </li>
          ))}
        </ol>
      )}
    </div>
  );
}

export function OptionText({ option }: { option: Option }) {
  return (
    <>
      <span className="option-label">
        <Visible text={option.label} />
      </span>
      {option.description !== undefined && (
        <span className="option-note">
          <Visible text={option.description} />
        </span>
      )}
    </>
  );
}
