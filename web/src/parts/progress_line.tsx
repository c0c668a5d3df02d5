import { CircleCheck, CircleX, LoaderCircle, type LucideIcon, TriangleAlert, Users } from "lucide-react";

import { decisionWords } from "../actions";
import type { Progress } from "../attempts";

/** How far an answer is, read out as it changes. */
export function ProgressLine({ progress }: { progress: Progress }) {
  const said = words(progress);
  const Icon = ICONS[progress.state];
  return (
    <div role="status" className="progress-place">
      {said !== undefined && (
        <p className="progress" data-state={progress.state}>
          {Icon && (
            <Icon
              aria-hidden="true"
              size={14}
              className={progress.state === "sending" ? "turning" : undefined}
            />
          )}
          <span>{said}</span>
        </p>
      )}
    </div>
  );
}

const ICONS: Readonly<Partial<Record<Progress["state"], LucideIcon>>> = {
  sending: LoaderCircle,
  delivered: CircleCheck,
  failed: CircleX,
  unclear: TriangleAlert,
  answered: Users,
};

export function words(progress: Progress): string | undefined {
  switch (progress.state) {
    case "open":
      return undefined;
    case "sending":
      return "Sending";
    case "delivered":
      if (progress.rule !== undefined)
        return `Answered by rule ${progress.rule}; waiting for the agent to go on`;
      return "Sent; waiting for the agent to go on";
    case "failed":
      return `Not delivered: ${progress.why}`;
    case "unclear":
      return `It may not have arrived: ${progress.why}`;
    case "answered": {
      const { by, decision } = progress.first;
      return `Answered first by ${by.who} on ${by.device}: ${decisionWords(decision)}`;
    }
  }
}
