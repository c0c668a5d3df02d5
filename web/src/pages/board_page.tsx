import { BellRing, CircleCheck, CirclePlay, Inbox, type LucideIcon } from "lucide-react";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";

import { answerKeys, frontOf, pauseAnswerKeys } from "../answer_keys";
import { attempts } from "../attempts";
import {
  type Board,
  canBeDismissed,
  filtered,
  type Grouped,
  grouped,
  GROUPS,
  type Held,
  withHeld,
} from "../board";
import { dismiss } from "../commands";
import { drafts } from "../drafts";
import { isTyped, useKeys } from "../keys";
import { useNarrow } from "../narrow";
import { Blank } from "../parts/blank";
import { CardStrip, type StripItem } from "../parts/card_strip";
import { ClearOld } from "../parts/clear_old";
import { GroupHeader } from "../parts/group_header";
import { UnreadableAgents } from "../parts/unreadable_agents";
import { useSettings } from "../settings";
import { groupName } from "../sub_state";
import type { Card, Group } from "../wire";

interface Props {
  board: Board;
  filter: string;
  selected: string | undefined;
  onSelect: (sessionId: string | undefined) => void;
}

/** The three groups: side by side on a desk, behind tabs on a phone. */
export function BoardPage({ board, filter, selected, onSelect }: Props) {
  const { shape } = useSettings();
  const narrow = useNarrow();
  const all = useMemo(() => grouped(board.cards.values()), [board.cards]);
  const sorted = useMemo(
    () => (filter.trim() === "" ? all : grouped(filtered(board.cards.values(), filter))),
    [all, board.cards, filter],
  );
  const held = useHeld(sorted);
  const shown = useMemo(() => withHeld(sorted, held), [sorted, held]);
  const [tab, setTab] = useState<Group>(() => GROUPS.find((group) => all[group].length > 0) ?? "needs_you");
  const visible = useMemo(
    () => (narrow ? shown[tab] : GROUPS.flatMap((group) => shown[group])),
    [narrow, shown, tab],
  );
  useBoardKeys(visible, selected, onSelect);
  useMovingOn(board, visible, selected, onSelect);
  const onDismiss = useCallback((card: Card) => void dismiss(card), []);
  const strip = { shape, selected, onSelect, onDismiss };

  const unreadable = board.summary.unreadable ?? [];
  if (board.cards.size === 0 && unreadable.length === 0) return <NoSessions />;
  if (filter.trim() !== "" && GROUPS.every((group) => shown[group].length === 0)) {
    return (
      <Blank icon={Inbox} title="No session matches the filter">
        <p>What ended before today is in History.</p>
      </Blank>
    );
  }
  if (narrow) {
    return (
      <div className="board is-narrow">
        <Tabs all={all} tab={tab} onTab={setTab} />
        <section className="column" data-group={tab} role="tabpanel" aria-labelledby={`tab-${tab}`}>
          <h2 className="visually-hidden">{groupName(tab)}</h2>
          <ClearOld cards={sorted[tab]} />
          {tab === "autonomous" && <UnreadableAgents agents={unreadable} />}
          {shown[tab].length === 0 ? (
            (tab !== "autonomous" || unreadable.length === 0) && <EmptyGroup group={tab} />
          ) : (
            <CardStrip key={tab} items={items(shown[tab])} label={groupName(tab)} {...strip} />
          )}
        </section>
      </div>
    );
  }
  if (shape === "list") {
    const lines = GROUPS.flatMap((group): StripItem[] => [
      // Counted as they are, also while one is held in its place.
      { type: "header", group, cards: sorted[group], total: all[group].length },
      ...items(shown[group]),
    ]);
    return (
      <div className="board is-list">
        <ClearOld cards={sorted.needs_you} />
        <UnreadableAgents agents={unreadable} />
        <CardStrip key="list" items={lines} label="Sessions" {...strip} />
      </div>
    );
  }
  return (
    <div className="board is-wide">
      {GROUPS.map((group) => (
        <section key={group} className="column" data-group={group} aria-labelledby={`group-${group}`}>
          <GroupHeader group={group} cards={sorted[group]} total={all[group].length} />
          <ClearOld cards={sorted[group]} />
          {group === "autonomous" && <UnreadableAgents agents={unreadable} />}
          {shown[group].length === 0 ? (
            (group !== "autonomous" || unreadable.length === 0) && <EmptyGroup group={group} />
          ) : (
            <CardStrip items={items(shown[group])} label={groupName(group)} {...strip} />
          )}
        </section>
      ))}
    </div>
  );
}

const items = (cards: readonly Card[]): StripItem[] => cards.map((card) => ({ type: "card", card }));

/** `j` and `k` move, `a` goes to the next that waits, `e` dismisses. */
function useBoardKeys(
  visible: readonly Card[],
  selected: string | undefined,
  onSelect: (sessionId: string | undefined) => void,
): void {
  const at = visible.findIndex((card) => card.sessionId === selected);
  const go = (index: number) => {
    const card = visible[Math.max(0, Math.min(index, visible.length - 1))];
    if (card) onSelect(card.sessionId);
  };
  useKeys({
    ...answerKeys(visible[at]),
    j: () => go(at + 1),
    k: () => go(at < 0 ? 0 : at - 1),
    a: () => {
      const card = nextWaiting(visible, selected);
      if (card) onSelect(card.sessionId);
    },
    e: () => {
      const card = visible[at];
      if (card && canBeDismissed(card)) void dismiss(card);
    },
  });
}

/** The next below the selected one, and from the top again. */
function nextWaiting(visible: readonly Card[], selected: string | undefined): Card | undefined {
  const waiting = visible.filter(
    (card) =>
      card.agentState.group === "needs_you" && (card.sessionId === selected || !isBeingAnswered(card)),
  );
  const next = waiting.findIndex((card) => card.sessionId === selected) + 1;
  return waiting[next % Math.max(1, waiting.length)];
}

/** All that it waits for is on its way. */
const isBeingAnswered = (card: Card) =>
  card.requests.some(({ key, answer }) => answer !== undefined || (key !== undefined && attempts.of(key))) &&
  frontOf(card) === undefined;

/** When what was answered from here is closed, and nothing else is open there: on to the next. */
function useMovingOn(
  board: Board,
  visible: readonly Card[],
  selected: string | undefined,
  onSelect: (sessionId: string | undefined) => void,
): void {
  const before = useRef<Card>(undefined);
  const card = selected === undefined ? undefined : board.cards.get(selected);
  useEffect(() => {
    const was = before.current;
    before.current = card;
    if (!card || was?.sessionId !== card.sessionId) return;
    const open = new Set(card.requests.map(({ key }) => key));
    const closed = was.requests.some(
      ({ key }) => key !== undefined && !open.has(key) && attempts.of(key)?.state === "taken",
    );
    if (!closed) return;
    pauseAnswerKeys();
    if (card.requests.length > 0 || drafts.all().has(card.sessionId) || isTyped(document.activeElement))
      return;
    const others = visible.filter(({ sessionId }) => sessionId !== card.sessionId);
    const next = nextWaiting(others, undefined);
    if (next) onSelect(next.sessionId);
  }, [card]);
}

/** The card whose field has the focus, where it was when it got it. */
function useHeld(sorted: Grouped): Held | undefined {
  const [held, setHeld] = useState<Held>();
  const current = useRef(sorted);
  current.current = sorted;
  useEffect(() => {
    const cardOf = (target: EventTarget | null) =>
      target instanceof Element
        ? (target.closest("[data-session]")?.getAttribute("data-session") ?? undefined)
        : undefined;
    const focused = ({ target }: FocusEvent) => {
      const sessionId = cardOf(target);
      const place = isTyped(target) ? placeIn(current.current, sessionId) : undefined;
      setHeld((was) => (was && was.sessionId === sessionId ? was : place));
    };
    const pointed = ({ target }: PointerEvent) => {
      setHeld((was) => (was && was.sessionId === cardOf(target) ? was : undefined));
    };
    document.addEventListener("focusin", focused);
    document.addEventListener("pointerdown", pointed);
    return () => {
      document.removeEventListener("focusin", focused);
      document.removeEventListener("pointerdown", pointed);
    };
  }, []);
  // The field went with its request, or was sent.
  const isOver = () => !drafts.all().has(held?.sessionId ?? "") && !isTyped(document.activeElement);
  useEffect(() => {
    if (held && isOver()) setHeld(undefined);
  }, [sorted, held]);
  return held;
}

function placeIn(groups: Grouped, sessionId: string | undefined): Held | undefined {
  for (const group of GROUPS) {
    const index = groups[group].findIndex((card) => card.sessionId === sessionId);
    if (sessionId !== undefined && index >= 0) return { sessionId, group, index };
  }
  return undefined;
}

interface TabsProps {
  all: Grouped;
  tab: Group;
  onTab: (group: Group) => void;
}

function Tabs({ all, tab, onTab }: TabsProps) {
  const step = (event: React.KeyboardEvent) => {
    const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? GROUPS.length - 1 : 0;
    if (by === 0) return;
    const next = GROUPS[(GROUPS.indexOf(tab) + by) % GROUPS.length]!;
    onTab(next);
    document.getElementById(`tab-${next}`)?.focus();
  };
  return (
    <div className="tabs" role="tablist" aria-label="Groups" onKeyDown={step}>
      {GROUPS.map((group) => (
        <button
          key={group}
          id={`tab-${group}`}
          type="button"
          role="tab"
          data-group={group}
          aria-selected={group === tab}
          tabIndex={group === tab ? 0 : -1}
          onClick={() => onTab(group)}
        >
          {groupName(group)} <span className="count">({all[group].length})</span>
        </button>
      ))}
    </div>
  );
}

const EMPTY_GROUPS: Readonly<Record<Group, { icon: LucideIcon; text: string }>> = {
  needs_you: { icon: BellRing, text: "Nobody waits for you" },
  autonomous: { icon: CirclePlay, text: "No agent is at work" },
  delivered: { icon: CircleCheck, text: "Nothing was delivered today" },
};

function EmptyGroup({ group }: { group: Group }) {
  const { icon: Icon, text } = EMPTY_GROUPS[group];
  return (
    <p className="empty-group">
      <Icon aria-hidden="true" size={16} strokeWidth={1.5} />
      {text}
    </p>
  );
}

function NoSessions() {
  return (
    <Blank icon={Inbox} title="No agent was seen yet">
      <p>
        Start Claude Code, Codex, Gemini CLI, OpenCode or Kilo as you always do: its card appears here. For
        faster and surer signals let them report:
      </p>
      <pre className="code">qd hooks install</pre>
      <p>
        To see the board with recorded sessions, run <code>qd demo</code>. What ended before today is in
        History.
      </p>
    </Blank>
  );
}
