import { defaultRangeExtractor, type Range, useVirtualizer } from "@tanstack/react-virtual";
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "react";

import { sessionOffer } from "../actions";
import { titleOfCard } from "../card_text";
import { useDrafts } from "../drafts";
import { isTyped } from "../keys";
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
  const drafts = useDrafts();
  const [unfolded, setUnfolded] = useState<string>();
  const unfold = useCallback(
    (sessionId: string) => {
      onSelect(sessionId);
      setUnfolded((was) => (was === sessionId ? undefined : sessionId));
    },
    [onSelect],
  );
  const virtual = useVirtualizer({
    count: items.length,
    getScrollElement: () => scroller.current,
    estimateSize: (index) =>
      items[index]?.type === "header" ? HEADER_PX : shape === "cards" ? CARD_PX : ROW_PX,
    getItemKey: (index) => keyOf(items[index]!),
    gap: shape === "cards" ? 8 : 0,
    overscan: 4,
    // What is being typed stays in the document, and so does what keys act on.
    rangeExtractor: (range) =>
      withKept(range, (index) => {
        const item = items[index];
        return item?.type === "card" && (item.card.sessionId === selected || drafts.has(item.card.sessionId));
      }),
    // Asking a new card for its height would lay the page out once for each; the observer tells it in
    // the same frame.
    measureElement: (element, entry, instance) =>
      entry?.borderBoxSize[0]?.blockSize ??
      instance.measurementsCache[instance.indexFromElement(element)]?.size ??
      CARD_PX,
  });
  useStillField(scroller);
  useSelection(items, selected, scroller, (index) => virtual.scrollToIndex(index, { align: "auto" }));
  const cards = items.filter(({ type }) => type === "card").length;
  let above = 0;
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
        {virtual.getVirtualItems().map(({ key, index, start, end }) => {
          const item = items[index]!;
          // One below the other by the page's own layout: one that grows moves the next before it is
          // measured, and never lies over it.
          const place = { marginTop: start - above };
          above = end;
          if (item.type === "header") {
            return (
              <div key={key} data-index={index} ref={virtual.measureElement} style={place}>
                <GroupHeader group={item.group} cards={item.cards} total={item.total} />
              </div>
            );
          }
          const { card } = item;
          const isSelected = selected === card.sessionId;
          const open =
            unfolded === card.sessionId || drafts.has(card.sessionId) || (isSelected && hasMore(card));
          return (
            <div key={key} data-index={index} ref={virtual.measureElement} style={place}>
              <article
                className={shape === "cards" ? "card" : "row"}
                aria-label={titleOfCard(card)}
                aria-current={isSelected || undefined}
                data-session={card.sessionId}
                data-group={card.agentState.group}
                data-state={card.agentState.state}
                onFocus={() => onSelect(card.sessionId)}
              >
                {shape === "cards" ? (
                  <SessionCard card={card} onDismiss={onDismiss} />
                ) : (
                  <SessionRow card={card} open={open} onOpen={unfold} onDismiss={onDismiss} />
                )}
              </article>
            </div>
          );
        })}
      </div>
    </div>
  );
}

const keyOf = (item: StripItem) => (item.type === "header" ? `group ${item.group}` : item.card.sessionId);

/** A selected row shows what it waits for: nobody answers what they do not see. */
const hasMore = (card: Card) =>
  card.requests.length > 0 || (card.agentState.group === "needs_you" && sessionOffer(card).prompt);

function withKept(range: Range, isKept: (index: number) => boolean): number[] {
  const near = defaultRangeExtractor(range);
  const first = near[0] ?? 0;
  const last = near.at(-1) ?? -1;
  const kept: number[] = [];
  for (let index = 0; index < range.count; index += 1) {
    if ((index < first || index > last) && isKept(index)) kept.push(index);
  }
  return kept.length === 0 ? near : [...near, ...kept].sort((a, b) => a - b);
}

/** A field that is typed in stays where it is on the screen, whatever comes and goes above it. */
function useStillField(scroller: React.RefObject<HTMLDivElement | null>): void {
  const seen = useRef<{ field: Element; top: number }>(undefined);
  const look = () => {
    const field = document.activeElement;
    const mine = field && isTyped(field) && scroller.current?.contains(field);
    return mine ? { field, top: field.getBoundingClientRect().top } : undefined;
  };
  useLayoutEffect(() => {
    const now = look();
    const drift = now && seen.current?.field === now.field ? now.top - seen.current.top : 0;
    if (drift !== 0 && scroller.current) scroller.current.scrollTop += drift;
    seen.current = drift === 0 ? now : look();
  });
  useEffect(() => {
    const box = scroller.current;
    // The reader's own scrolling is meant.
    const scrolled = () => (seen.current = look());
    box?.addEventListener("scroll", scrolled);
    box?.addEventListener("focusin", scrolled);
    box?.addEventListener("input", scrolled);
    return () => {
      box?.removeEventListener("scroll", scrolled);
      box?.removeEventListener("focusin", scrolled);
      box?.removeEventListener("input", scrolled);
    };
  }, []);
}

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
