import type { LucideIcon } from "lucide-react";
import { useEffect, useId, useMemo, useRef, useState } from "react";

import { PALETTE_LINES_MAX } from "../limits";
import { Modal } from "./modal";

export interface PaletteLine {
  key: string;
  icon: LucideIcon;
  text: string;
  /** Greyed, to the right. */
  note?: string;
  act: () => void;
  /** Asked before it happens: these are shown instead, and one of them acts. */
  then?: readonly PaletteLine[];
}

interface Props {
  lines: readonly PaletteLine[];
  onClose: () => void;
}

/** Every command and every session, by typing a part of its name. */
export function Palette({ lines, onClose }: Props) {
  const [query, setQuery] = useState("");
  const [at, setAt] = useState(0);
  const [asked, setAsked] = useState<readonly PaletteLine[]>();
  const id = useId();
  const list = useRef<HTMLUListElement>(null);
  const found = useMemo(() => matching(asked ?? lines, query), [asked, lines, query]);
  const chosen = Math.min(at, found.length - 1);
  useEffect(() => {
    list.current?.children[chosen]?.scrollIntoView({ block: "nearest" });
  }, [chosen]);
  const act = (line: PaletteLine | undefined) => {
    if (!line) return;
    if (line.then) {
      setAsked(line.then);
      setQuery("");
      setAt(0);
      return;
    }
    onClose();
    line.act();
  };
  const pressed = (event: React.KeyboardEvent) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by !== undefined && found.length > 0) setAt((chosen + by + found.length) % found.length);
    else if (event.key === "Enter") act(found[chosen]);
    else return;
    event.preventDefault();
  };
  return (
    <Modal label="Commands" className="palette" onClose={onClose}>
      <input
        className="palette-field"
        role="combobox"
        aria-expanded="true"
        aria-controls={`${id}-list`}
        aria-activedescendant={found.length > 0 ? `${id}-${chosen}` : undefined}
        aria-label="Command or session"
        placeholder="Go to a session, or do something"
        autoComplete="off"
        spellCheck={false}
        autoFocus
        value={query}
        onChange={(event) => {
          setQuery(event.target.value);
          setAt(0);
        }}
        onKeyDown={pressed}
      />
      <ul id={`${id}-list`} role="listbox" aria-label="Commands and sessions" ref={list}>
        {found.map((line, index) => (
          <li
            key={line.key}
            id={`${id}-${index}`}
            role="option"
            aria-selected={index === chosen}
            onPointerMove={() => setAt(index)}
            onClick={() => act(line)}
          >
            <line.icon aria-hidden="true" size={16} />
            <span className="palette-text">{line.text}</span>
            {line.note !== undefined && <span className="palette-note">{line.note}</span>}
          </li>
        ))}
      </ul>
      {found.length === 0 && <p className="palette-none">Nothing is called that</p>}
    </Modal>
  );
}

function matching(lines: readonly PaletteLine[], query: string): PaletteLine[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const found: PaletteLine[] = [];
  for (const line of lines) {
    const text = `${line.text} ${line.note ?? ""}`.toLowerCase();
    if (words.every((word) => text.includes(word))) found.push(line);
    if (found.length === PALETTE_LINES_MAX) break;
  }
  return found;
}
