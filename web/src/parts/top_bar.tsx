import {
  Bell,
  ChartColumn,
  Columns3,
  Command,
  History,
  Keyboard,
  LayoutList,
  type LucideIcon,
  Monitor,
  Moon,
  Plus,
  Sun,
} from "lucide-react";

import { money, tokens } from "../amount";
import type { Link as StreamLink } from "../connection";
import type { Route } from "../route";
import { nextTheme, set, type Theme, useSettings } from "../settings";
import type { Summary } from "../wire";
import { Link } from "./link";

interface Props {
  page: Route["page"];
  /** There is a board to filter and to shape. */
  hasBoard: boolean;
  summary: Summary;
  link: StreamLink;
  filter: string;
  onFilter: (filter: string) => void;
  onNew: () => void;
  onBell: () => void;
  onPalette: () => void;
  onKeys: () => void;
}

const PAGES: readonly { page: Route["page"]; path: string; name: string; icon: LucideIcon }[] = [
  { page: "board", path: "/", name: "Board", icon: Columns3 },
  { page: "history", path: "/history", name: "History", icon: History },
  { page: "usage", path: "/usage", name: "Usage", icon: ChartColumn },
];

const THEME_ICONS: Readonly<Record<Theme, LucideIcon>> = { system: Monitor, light: Sun, dark: Moon };

export function TopBar(props: Props) {
  const { page, hasBoard, summary, link, filter, onFilter, onNew, onBell, onPalette, onKeys } = props;
  const { theme, shape } = useSettings();
  const ThemeIcon = THEME_ICONS[theme];
  const otherShape = shape === "cards" ? "list" : "cards";
  return (
    <header className="top-bar">
      <nav aria-label="Pages">
        {PAGES.map(({ page: each, path, name, icon: Icon }) => (
          <Link key={each} to={path} current={each === page} className="nav-link">
            <Icon aria-hidden="true" size={16} />
            {name}
          </Link>
        ))}
      </nav>
      {hasBoard && (
        <input
          type="search"
          className="field filter"
          placeholder="Filter"
          aria-label="Filter sessions"
          data-search
          value={filter}
          onChange={(event) => onFilter(event.target.value)}
          onKeyDown={(event) => {
            if (event.key !== "Escape") return;
            onFilter("");
            event.currentTarget.blur();
          }}
        />
      )}
      <div className="top-right">
        {link.state !== "signed_out" && page !== "sign_in" && <NewButton onNew={onNew} />}
        <Today summary={summary} />
        <LinkSign link={link} />
        {hasBoard && (
          <IconButton
            icon={otherShape === "list" ? LayoutList : Columns3}
            label={`Show as ${otherShape}`}
            onClick={() => set({ shape: otherShape })}
          />
        )}
        {/* A phone has it in the palette. */}
        <span className="desk-only">
          <IconButton
            icon={ThemeIcon}
            label={`Theme: ${theme}`}
            onClick={() => set({ theme: nextTheme(theme) })}
          />
        </span>
        {link.state !== "signed_out" && <IconButton icon={Bell} label="Notifications" onClick={onBell} />}
        <span className="desk-only">
          <IconButton icon={Keyboard} label="Keyboard shortcuts" onClick={onKeys} />
        </span>
        <IconButton icon={Command} label="Commands" onClick={onPalette} />
      </div>
    </header>
  );
}

/** On a phone its sign alone. */
function NewButton({ onNew }: { onNew: () => void }) {
  return (
    <button type="button" className="new-button" title="New session (c)" onClick={onNew}>
      <Plus aria-hidden="true" size={16} />
      <span className="new-word">New session</span>
    </button>
  );
}

function Today({ summary }: { summary: Summary }) {
  const { totalCostTodayUsd: cost, totalTokensToday: count } = summary;
  if (cost === undefined && count === undefined) return null;
  return (
    <Link to="/usage" className="today number">
      {[cost === undefined ? "" : money(cost), count === undefined ? "" : `${tokens(count)} tok`]
        .filter(Boolean)
        .join(" · ")}
      <span className="today-word"> today</span>
    </Link>
  );
}

const LINK_WORDS: Readonly<Record<StreamLink["state"], string>> = {
  connecting: "Connecting",
  live: "Live",
  away: "Not connected",
  signed_out: "Signed out",
};

function LinkSign({ link }: { link: StreamLink }) {
  return (
    <span className="link-sign" data-state={link.state} role="status">
      <span className="link-dot" aria-hidden="true" />
      <span className="link-word">{LINK_WORDS[link.state]}</span>
    </span>
  );
}

interface IconButtonProps {
  icon: LucideIcon;
  label: string;
  onClick: () => void;
}

export function IconButton({ icon: Icon, label, onClick }: IconButtonProps) {
  return (
    <button type="button" className="icon-button" aria-label={label} title={label} onClick={onClick}>
      <Icon aria-hidden="true" size={16} />
    </button>
  );
}
