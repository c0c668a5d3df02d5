import { subStateCounts } from "../board";
import { groupName, subStateIcon, subStateWord } from "../sub_state";
import type { Card, Group } from "../wire";

interface Props {
  group: Group;
  cards: readonly Card[];
  /** How many there are without the filter. */
  total: number;
}

/** A group's name, how many are in it, and in which sub-states. */
export function GroupHeader({ group, cards, total }: Props) {
  const count = cards.length === total ? String(total) : `${cards.length} of ${total}`;
  return (
    <div className="group-header" data-group={group}>
      <h2 id={`group-${group}`}>
        {groupName(group)} <span className="count">{count}</span>
      </h2>
      {cards.length > 0 && (
        <ul className="sub-counts" aria-label="Sub-states">
          {subStateCounts(cards).map(({ state, count }) => {
            const Icon = subStateIcon(group, state);
            return (
              <li key={state} data-state={state}>
                <Icon aria-hidden="true" size={12} />
                {count} {subStateWord(state, count)}
              </li>
            );
          })}
        </ul>
      )}
    </div>
  );
}
