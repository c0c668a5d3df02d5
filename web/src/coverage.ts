/** How much of an element has been on the screen, piece by piece as a reader scrolls. */

/** A part of a pixel at an edge hides nothing. */
const EDGE_PX = 2;

type Span = readonly [top: number, bottom: number];

/** What was seen of each element, while its size stays. */
export class Coverage {
  private readonly seen = new Map<Element, { size: string; spans: Span[] }>();

  /** Takes in what is on the screen now, and says whether that and what was before are the whole. */
  look(root: Element): boolean {
    if (document.hidden || document.querySelector("dialog[open]")) return false;
    const parts = [root, ...root.querySelectorAll("[data-read]")];
    const whole = parts.map((part) => this.isCovered(part)).every(Boolean);
    return whole && root.querySelector("[data-folded]") === null;
  }

  private isCovered(part: Element): boolean {
    const { top, left, width, height } = part.getBoundingClientRect();
    // Lines break elsewhere in another width: it is another text to read.
    const size = `${Math.round(width)} ${Math.round(height)}`;
    const known = this.seen.get(part);
    const before = known?.size === size ? known.spans : [];
    const window = windowOf(part);
    const isWide = window.left <= left + EDGE_PX && window.right >= left + width - EDGE_PX;
    const now: Span = [window.top - top, window.bottom - top];
    const spans = isWide && now[1] > now[0] ? joined([...before, now]) : before;
    this.seen.set(part, { size, spans });
    return height === 0 || spans.some(([from, to]) => from <= EDGE_PX && to >= height - EDGE_PX);
  }
}

/** The part of the screen through which an element is seen. */
function windowOf(part: Element): { top: number; left: number; bottom: number; right: number } {
  const window = { top: 0, left: 0, bottom: innerHeight, right: innerWidth };
  for (let each = part.parentElement; each; each = each.parentElement) {
    if (getComputedStyle(each).overflow === "visible") continue;
    const { top, left, bottom, right } = each.getBoundingClientRect();
    window.top = Math.max(window.top, top);
    window.left = Math.max(window.left, left);
    window.bottom = Math.min(window.bottom, bottom);
    window.right = Math.min(window.right, right);
  }
  // On a phone the answers stay at the bottom, over what is not scrolled to yet.
  const answers = part.closest(".answerable")?.querySelector(".answers")?.getBoundingClientRect();
  if (answers && answers.height > 0) window.bottom = Math.min(window.bottom, answers.top);
  return window;
}

/** Spans that touch are one. */
function joined(spans: readonly Span[]): Span[] {
  const all: Span[] = [];
  for (const [top, bottom] of [...spans].sort(([a], [b]) => a - b)) {
    const last = all.at(-1);
    if (last && top <= last[1] + EDGE_PX) all[all.length - 1] = [last[0], Math.max(last[1], bottom)];
    else all.push([top, bottom]);
  }
  return all;
}
