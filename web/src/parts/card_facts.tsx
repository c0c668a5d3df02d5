import { SquareTerminal } from "lucide-react";

import { money, tokens } from "../amount";
import { contextShare, fullPlaceOf, placeOf } from "../card_text";
import { asksNobody, harnessName } from "../harness";
import { policyChip } from "../policy";
import type { Card } from "../wire";
import { ContextGauge } from "./context_gauge";

/** The small print of a card: who runs it, where, how, and what it cost. */
export function CardFacts({ card }: { card: Card }) {
  const { usage, where, mode } = card;
  const place = placeOf(where);
  const share = contextShare(card);
  const policy = policyChip(card);
  const model = usage.model ?? card.drive?.model;
  return (
    <ul className="facts">
      <li className="harness">{harnessName(card.harness)}</li>
      {card.driven && (
        <li className="driven" title="Started from here: its state is known, not believed">
          driven
        </li>
      )}
      {mode !== undefined && (
        <li className={asksNobody(mode) ? "mode is-open" : "mode"} title="Permission mode">
          {mode}
        </li>
      )}
      {policy && (
        <li className={policy.loud ? "policy is-loud" : "policy"} title={policy.title}>
          {policy.text}
        </li>
      )}
      {model !== undefined && <li className="model">{model}</li>}
      {place !== undefined && where && (
        <li className="fact" title={`Runs in ${fullPlaceOf(where)}`}>
          <SquareTerminal aria-hidden="true" size={12} />
          {place}
        </li>
      )}
      <li className="used number">
        {usage.totalTokens !== undefined && (
          <span title="Tokens, with cache reads and writes">{tokens(usage.totalTokens)} tok</span>
        )}
        {usage.costUsd !== undefined && (
          <span title={usage.estimated ? "Estimated: no price is known for a model" : "Cost"}>
            {money(usage.costUsd, usage.estimated)}
          </span>
        )}
        {share !== undefined && (
          <ContextGauge share={share} used={usage.contextTokens ?? 0} window={usage.contextWindow ?? 0} />
        )}
      </li>
    </ul>
  );
}
