import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useLayoutEffect, useRef } from "react";

import { titleOfCard } from "../card_text";
import type { Shape } from "../settings";
import type { Card, Group } from "../wire";
import { GroupHeader } from "./group_header";
import { SessionCard } from "./session_card";
import { SessionRow } from "./session_row";

export type StripItem =
  { type: "header"; group: Group; cards: readonly Card[]; total: number } | { type: "card"; card: Card };

interface Props {
  items: readonly StripItem[];
  shape: Shape;
  /** The session that keys act on. */
  selected: string | undefined;
  label: string;
  onSelect: (sessionId: string) => void;
  onDismiss: (card: Card) => void;
}

const CARD_PX = 132;
const ROW_PX = 36;
const HEADER_PX = 44;

/** Cards one below the other, however many: only those near the window are in the document. */
export function CardStrip({ items, shape, selected, label, onSelect, onDismiss }: Props) {
  const scroller = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: items.length,
    getScrollElement: () => scroller.current,
    estimateSize: (index) =>
      items[index]?.type === "header" ? HEADER_PX : shape === "cards" ? CARD_PX : ROW_PX,
    getItemKey: (index) => keyOf(items[index]!),
    gap: shape === "cards" ? 8 : 0,
    overscan: 4,
    // Asking a new card for its height would lay the page out once for each; the observer tells it in
    // the same frame.
    measureElement: (element, entry, instance) =>
      entry?.borderBoxSize[0]?.blockSize ??
      instance.measurementsCache[instance.indexFromElement(element)]?.size ??
      CARD_PX,
  });
  useSelection(items, selected, scroller, (index) => virtual.scrollToIndex(index, { align: "auto" }));
  const cards = items.filter(({ type }) => type === "card").length;
  return (
    <div
      className="strip"
      data-shape={shape}
      ref={scroller}
      role="group"
      aria-label={label}
      tabIndex={cards > 0 ? -1 : undefined}
    >
      <div className="strip-all" style={{ height: virtual.getTotalSize() }}>
        {virtual.getVirtualItems().map(({ key, index, start }) => {
          const item = items[index]!;
          const place = { transform: `translateY(${start}px)` };
          if (item.type === "header") {
            return (
              <div
                key={key}
                className="strip-item"
                data-index={index}
                ref={virtual.measureElement}
                style={place}
              >
                <GroupHeader group={item.group} cards={item.cards} total={item.total} />
              </div>
            );
          }
          const { card } = item;
          const Part = shape === "cards" ? SessionCard : SessionRow;
          return (
            <div
              key={key}
              className="strip-item"
              data-index={index}
              ref={virtual.measureElement}
              style={place}
            >
              <article
                className={shape === "cards" ? "card" : "row"}
                aria-label={titleOfCard(card)}
                aria-current={selected === card.sessionId || undefined}
                data-session={card.sessionId}
                data-group={card.agentState.group}
                data-state={card.agentState.state}
                onFocus={() => onSelect(card.sessionId)}
              >
                <Part card={card} onDismiss={onDismiss} />
              </article>
            </div>
          );
        })}
      </div>
    </div>
  );
}

const keyOf = (item: StripItem) => (item.type === "header" ? `group ${item.group}` : item.card.sessionId);

/**
 * Brings the selected card into view and gives it the focus. A card that moves in the order loses
 * the focus to nobody; it gets it back.
 */
function useSelection(
  items: readonly StripItem[],
  selected: string | undefined,
  scroller: React.RefObject<HTMLDivElement | null>,
  scrollTo: (index: number) => void,
): void {
  const focused = useRef<string>(undefined);
  const link = () =>
    scroller.current?.querySelector<HTMLElement>(`[data-session="${CSS.escape(selected ?? "")}"] a`);
  useEffect(() => {
    const index = items.findIndex((item) => item.type === "card" && item.card.sessionId === selected);
    if (index < 0) return;
    if (document.activeElement?.closest("[data-session]")?.getAttribute("data-session") !== selected) {
      scrollTo(index);
      requestAnimationFrame(() => link()?.focus({ preventScroll: true }));
    }
    focused.current = selected;
    // Only a new selection scrolls: cards that move must not pull the window along.
  }, [selected]);
  useEffect(() => {
    // Somebody who points elsewhere means it.
    const pointed = () => (focused.current = undefined);
    document.addEventListener("pointerdown", pointed);
    return () => document.removeEventListener("pointerdown", pointed);
  }, []);
  useLayoutEffect(() => {
    const had = focused.current === selected && document.activeElement === document.body;
    if (selected !== undefined && had) link()?.focus({ preventScroll: true });
  });
}
