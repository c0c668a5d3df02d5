import { Send } from "lucide-react";
import { useId, useRef } from "react";

import { answered, answersAtOnce, type Filled, inFront, toggled, UNFILLED } from "../actions";
import type { Option, Question } from "../request";
import { ActButton } from "./act_button";
import type { Answering } from "./request_box";
import { OptionText } from "./request_shown";
import { TextBox } from "./text_box";
import { useReading } from "./use_reading";
import { Visible } from "./visible";

interface Props extends Answering {
  questions: readonly Question[];
}

/** All questions of one request, and one Send. A single choice of one question is sent as it is pressed. */
export function QuestionForm({ questions, request, draft, locked, front, change, send }: Props) {
  const atOnce = answersAtOnce(questions);
  const filled = (index: number) => draft.filled?.[index] ?? UNFILLED;
  const decision = answered(
    questions,
    questions.map((_, index) => filled(index)),
  );
  const fill = (index: number, next: Filled) => {
    const all = questions.map((_, each) => (each === index ? next : filled(each)));
    change({ filled: all });
  };
  const submit = () => {
    if (decision) send(decision);
  };
  const choose = (index: number, option: Option) => {
    const question = questions[index]!;
    const next = toggled(question, filled(index), option.label);
    const whole = atOnce ? answered(questions, [next]) : undefined;
    if (whole) send(whole);
    else fill(index, next);
  };
  const typed = filled(0).text.trim() !== "";
  const place = useRef<HTMLFormElement>(null);
  useReading(request, place);
  return (
    <form
      ref={place}
      className="request question-form"
      data-kind={request.kind}
      data-request={request.requestId}
      onSubmit={(event) => {
        event.preventDefault();
        if (!locked) submit();
      }}
    >
      {request.agent !== undefined && (
        <p className="request-note">
          asked by subagent <Visible text={request.agent} />
        </p>
      )}
      {questions.map((question, index) => (
        <fieldset key={index} className="question" data-question={index}>
          <legend className="question-text">
            <Visible text={question.text || "The agent asks"} />
          </legend>
          <Options
            question={question}
            chosen={filled(index).chosen}
            atOnce={atOnce}
            locked={locked}
            hinted={front && index === inFront(questions, draft)}
            onChoose={(option) => choose(index, option)}
          />
          <TextBox
            label={question.options.length > 0 ? "Another answer" : "Answer"}
            placeholder={question.options.length > 0 ? "Another answer" : "Answer"}
            value={filled(index).text}
            locked={locked}
            secret={question.secret ?? false}
            onChange={(text) =>
              fill(index, { ...filled(index), text, ...(question.secret ? { secret: true } : {}) })
            }
            onSubmit={submit}
          />
        </fieldset>
      ))}
      {(!atOnce || typed || questions[0]!.options.length === 0) && (
        <div className="acts" role="group" aria-label="Answer">
          <ActButton look="strong" icon={Send} locked={locked || decision === undefined} onPress={submit}>
            Send
          </ActButton>
        </div>
      )}
    </form>
  );
}

interface OptionsProps {
  question: Question;
  chosen: readonly string[];
  atOnce: boolean;
  locked: boolean;
  hinted: boolean;
  onChoose: (option: Option) => void;
}

function Options({ question, chosen, atOnce, locked, hinted, onChoose }: OptionsProps) {
  const name = useId();
  if (question.options.length === 0) return null;
  return (
    <ol className="options is-live" data-hinted={hinted || undefined}>
      {question.options.map((option, index) => (
        <li key={index}>
          {atOnce ? (
            <button
              type="button"
              className="option"
              aria-disabled={locked || undefined}
              aria-keyshortcuts={hinted && index < 9 ? String(index + 1) : undefined}
              onClick={() => {
                if (!locked) onChoose(option);
              }}
            >
              <span className="option-text">
                <OptionText option={option} />
              </span>
            </button>
          ) : (
            <label className="option" aria-disabled={locked || undefined}>
              <input
                type={question.several ? "checkbox" : "radio"}
                name={name}
                checked={chosen.includes(option.label)}
                onChange={() => {
                  if (!locked) onChoose(option);
                }}
              />
              <span className="option-text">
                <OptionText option={option} />
              </span>
            </label>
          )}
        </li>
      ))}
    </ol>
  );
}
