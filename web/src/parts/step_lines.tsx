import {
  Ban,
  CircleCheck,
  CircleDashed,
  CircleEllipsis,
  CirclePause,
  CirclePlay,
  CircleQuestionMark,
  CircleStop,
  CircleX,
  LoaderCircle,
  type LucideIcon,
  Octagon,
  Power,
  RotateCw,
  ShieldQuestionMark,
  TriangleAlert,
  User,
  Webhook,
} from "lucide-react";
import { memo, type ReactNode } from "react";

import { clock, shortDuration, words } from "../amount";
import { useNow } from "../clock";
import type { HookStep, Step, ToolStatus, ToolStep } from "../conversation";
import { TEXT_CHARS_MAX } from "../limits";
import type { LiveAnswer } from "../live_answer";
import { MarkdownText } from "./markdown_text";
import { Plain, ToolShown, toolBrief } from "./transcript_lines";
import { Visible } from "./visible";

/** Tries a failed run again; none where it cannot be. */
export type RetryRun = (kind: "tools" | "hooks", run: string) => ReactNode;

interface Props {
  steps: readonly Step[];
  thoughts: ReadonlyMap<string, string>;
  live: LiveAnswer | undefined;
  retry: RetryRun;
}

/** What was said and done, oldest first, and the answer that is coming. */
export function StepLines({ steps, thoughts, live, retry }: Props) {
  return (
    <ol className="transcript-lines steps">
      {steps.map((step) => (
        <StepLine
          key={`${step.kind} ${step.id}`}
          step={step}
          thinking={step.kind === "answer" ? (step.thinking ?? thoughts.get(step.id)) : undefined}
          retry={failedRun(step) === undefined ? undefined : retry}
        />
      ))}
      {live && <LiveLine live={live} known={steps} />}
    </ol>
  );
}

const failedRun = (step: Step) =>
  (step.kind === "tool" || step.kind === "hook") && step.status === "failed"
    ? step.kind === "tool"
      ? step.run
      : step.id
    : undefined;

interface LineProps {
  step: Step;
  thinking: string | undefined;
  retry: RetryRun | undefined;
}

const StepLine = memo(function StepLine({ step, thinking, retry }: LineProps) {
  switch (step.kind) {
    case "said":
      return (
        <li className="entry" data-role="user">
          <Head icon={User} name="You" at={step.at} />
          <Plain text={step.text} className="said" />
        </li>
      );
    case "answer":
      // An answer may be calls and nothing else.
      if (step.text === "" && thinking === undefined) return null;
      return (
        <li className="entry" data-role="assistant">
          <Head name="Agent" at={step.at} />
          {thinking !== undefined && <Thinking text={thinking} />}
          {step.text !== "" && <MarkdownText text={step.text} />}
        </li>
      );
    case "tool":
      return <ToolCard step={step} retry={retry} />;
    case "hook":
      return <HookCard step={step} retry={retry} />;
    case "turn":
      return <TurnLine reason={step.reason} to={step.to} at={step.at} />;
    case "trouble":
      return (
        <li className="step-note" data-look="trouble">
          <TriangleAlert aria-hidden="true" size={14} />
          <span>
            <strong>{words(step.code)}</strong> <Visible text={step.message} />
          </span>
          <Time at={step.at} />
        </li>
      );
  }
});

function Head({ icon: Icon, name, at }: { icon?: LucideIcon; name: string; at: number }) {
  return (
    <p className="entry-head">
      {Icon && <Icon aria-hidden="true" size={12} />}
      <span>{name}</span>
      <Time at={at} />
    </p>
  );
}

const Time = ({ at }: { at: number }) => (
  <time className="number" dateTime={new Date(at).toISOString()}>
    {clock(at)}
  </time>
);

function Thinking({ text, open = false }: { text: string; open?: boolean }) {
  return (
    <details className="thinking" open={open}>
      <summary>Thinking</summary>
      <Plain text={text} className="said" />
    </details>
  );
}

/** What was answered so far. Long text is cut at its beginning: its end is what is new. */
function LiveLine({ live, known }: { live: LiveAnswer; known: readonly Step[] }) {
  const { text, thinking, lost, ended } = live;
  // A call that runs has a card of its own.
  const calls = live.calls.filter(({ callId }) => !known.some(({ id }) => id === callId));
  const isBare = text === "" && calls.length === 0;
  // What failed before a word came is told by its error.
  if (ended && isBare && thinking === "") return null;
  return (
    <li className="entry" data-role="assistant" data-live={ended === undefined || undefined}>
      <Head name="Agent" at={live.startedAt} />
      {lost && <p className="step-aside">A part is missing; the whole answer shows when it is complete.</p>}
      {thinking !== "" && <Thinking text={thinking.slice(-TEXT_CHARS_MAX)} open={isBare} />}
      {text !== "" && <MarkdownText text={text} />}
      {calls.map(({ callId, name, text: input }) => (
        <p key={callId} className="call-coming">
          <CircleDashed aria-hidden="true" size={14} />
          <span className="tool-name">
            <Visible text={name} reading="code" />
          </span>
          <span className="tool-brief">
            <Visible text={input.slice(-240)} reading="code" />
          </span>
        </p>
      ))}
      {ended === undefined && <p className="live-mark">answering</p>}
      {ended?.how === "failed" && <p className="step-aside">It broke off here.</p>}
    </li>
  );
}

const STATUSES: Readonly<Record<ToolStatus, { icon: LucideIcon; word: string }>> = {
  pending: { icon: CircleDashed, word: "not run yet" },
  waiting: { icon: ShieldQuestionMark, word: "waits for you" },
  queued: { icon: CircleEllipsis, word: "queued" },
  running: { icon: LoaderCircle, word: "running" },
  succeeded: { icon: CircleCheck, word: "succeeded" },
  failed: { icon: CircleX, word: "failed" },
  canceled: { icon: CircleStop, word: "canceled" },
  refused: { icon: Ban, word: "denied" },
  lost: { icon: CircleQuestionMark, word: "cut off" },
};

const lookOf = (step: ToolStep) =>
  step.status === "succeeded" && step.isError === true
    ? { icon: CircleX, word: "returned an error", look: "error" }
    : { ...STATUSES[step.status], look: step.status };

function ToolCard({ step, retry }: { step: ToolStep; retry: RetryRun | undefined }) {
  const { icon: Icon, word, look } = lookOf(step);
  return (
    <li className="entry" data-role="tool">
      <details className="step-card" data-status={look} data-call={step.id}>
        <summary>
          <Icon aria-hidden="true" size={14} className={look === "running" ? "turning" : undefined} />
          <span className="tool-name">
            <Visible text={step.name} reading="code" />
          </span>
          <span className="tool-brief">
            <Visible text={toolBrief(step.name, step.input)} reading="code" />
          </span>
          <span className="step-status">
            {word}
            {step.attempt > 1 && `, attempt ${step.attempt}`}
          </span>
          <Took step={step} />
        </summary>
        <ToolShown name={step.name} input={step.input} />
        {step.error !== undefined && (
          <p className="step-error">
            <Visible text={step.error} />
          </p>
        )}
        {step.output !== undefined && step.output !== "" && (
          <Plain text={step.output} className="code tool-output" />
        )}
        {step.output === "" && <p className="step-aside">No output.</p>}
      </details>
      {step.status === "failed" && step.run !== undefined && retry?.("tools", step.run)}
    </li>
  );
}

function HookCard({ step, retry }: { step: HookStep; retry: RetryRun | undefined }) {
  const { word } = STATUSES[step.status];
  return (
    <li className="entry" data-role="tool">
      <div className="step-card is-hook" data-status={step.status}>
        <p className="step-line">
          <Webhook aria-hidden="true" size={14} />
          <span className="tool-name">
            <Visible text={step.name} reading="code" />
          </span>
          <span className="tool-brief">hook after the tools</span>
          <span className="step-status">
            {word}
            {step.attempt > 1 && `, attempt ${step.attempt}`}
          </span>
          <Took step={step} />
        </p>
        {step.error !== undefined && (
          <p className="step-error">
            <Visible text={step.error} />
          </p>
        )}
      </div>
      {step.status === "failed" && retry?.("hooks", step.id)}
    </li>
  );
}

function Took({ step }: { step: ToolStep | HookStep }) {
  const { startedAt, endedAt } = step;
  const lasting = startedAt !== undefined && endedAt === undefined && step.status === "running";
  const now = useNow((at) => (lasting ? at : 0));
  if (startedAt === undefined || (endedAt === undefined && !lasting)) return null;
  return <span className="run-time number">{shortDuration((endedAt ?? now) - startedAt)}</span>;
}

const TURNS: Readonly<Record<string, readonly [icon: LucideIcon, text: string]>> = {
  stop_requested: [Octagon, "Stop was asked for"],
  harness_exited: [Power, "The agent has ended"],
  retry_due: [RotateCw, "Tried again"],
  retry_requested: [RotateCw, "Tried again, as you asked"],
  paused: [CirclePause, "Paused"],
  resumed: [CirclePlay, "Goes on"],
  retries_exhausted: [CircleX, "Gave up after its retries"],
  timed_out: [TriangleAlert, "Took too long"],
  interrupted: [CircleStop, "Interrupted"],
};

function TurnLine({ reason, to, at }: { reason: string; to: string; at: number }) {
  const [Icon, text] = TURNS[reason] ?? [CircleEllipsis, words(reason)];
  return (
    <li className="step-note" data-reason={reason}>
      <Icon aria-hidden="true" size={14} />
      <span>{reason === "stop_requested" && to === "Stopped" ? "Stopped" : text}</span>
      <Time at={at} />
    </li>
  );
}
