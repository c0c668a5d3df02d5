import { type ReactNode, useState } from "react";

interface Props<T> {
  all: readonly T[];
  shownMax: number;
  /** "12 more lines" */
  noun: string;
  children: (shown: readonly T[]) => ReactNode;
}

/** The first of many, and a button for the rest. */
export function Folded<T>({ all, shownMax, noun, children }: Props<T>) {
  const [open, setOpen] = useState(false);
  // A button for one line would take the line's place.
  const hidden = all.length > shownMax + 1 ? all.length - shownMax : 0;
  return (
    <>
      {children(open || hidden === 0 ? all : all.slice(0, shownMax))}
      {hidden > 0 && (
        <button
          type="button"
          className="quiet-button unfold"
          aria-expanded={open}
          data-folded={!open || undefined}
          onClick={() => setOpen(!open)}
        >
          {open ? "Show less" : `${hidden} more ${noun}`}
        </button>
      )}
    </>
  );
}
