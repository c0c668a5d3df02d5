import {
  ChartColumn,
  Columns3,
  Compass,
  History,
  Keyboard,
  LayoutList,
  LogOut,
  Plus,
  SunMoon,
} from "lucide-react";
import { useEffect, useMemo, useState } from "react";

import { areAnswerKeysQuiet } from "./answer_keys";
import { grouped, titleOf } from "./board";
import { linesOf } from "./card_lines";
import { titleOfCard } from "./card_text";
import { useKeys } from "./keys";
import { connection, useLive } from "./live";
import { AwayPage } from "./pages/away_page";
import { BoardPage } from "./pages/board_page";
import { HistoryPage } from "./pages/history_page";
import { SessionPage } from "./pages/session_page";
import { SignInPage } from "./pages/sign_in_page";
import { UsagePage } from "./pages/usage_page";
import { BellDialog } from "./parts/bell_dialog";
import { Blank } from "./parts/blank";
import { KeyHelp } from "./parts/key_help";
import { LinkBanner } from "./parts/link_banner";
import { NewSessionDialog } from "./parts/new_session_dialog";
import { NoticeLine } from "./parts/notice_line";
import { Palette, type PaletteLine } from "./parts/palette";
import { TopBar } from "./parts/top_bar";
import { TroubleBanner } from "./parts/trouble_banner";
import { navigate, type Route, routeOf, sessionPath, usePath } from "./route";
import { nextTheme, set, useSettings } from "./settings";
import { signOut } from "./sign_out";
import { iconOf } from "./sub_state";
import type { Card } from "./wire";

const retry = () => connection.retry();

export function App({ signInCode }: { signInCode: string | undefined }) {
  const live = useLive();
  const route = routeOf(usePath());
  const [filter, setFilter] = useState("");
  const [selected, setSelected] = useState<string>();
  const [open, setOpen] = useState<"palette" | "keys" | "bell" | "new">();
  const [code, setCode] = useState(signInCode);
  const { board, link, known } = live;
  useTitle(titleOf(board.summary), board.summary.needsYouCount);

  const next = () => {
    const first = grouped(board.cards.values()).needs_you[0];
    if (!first) return;
    setSelected(first.sessionId);
    navigate("/");
  };
  const acting = route.page === "session" ? route.sessionId : route.page === "board" ? selected : undefined;
  const isAsked = (board.cards.get(acting ?? "")?.requests.length ?? 0) > 0;
  const isSignedIn = link.state !== "signed_out" && route.page !== "sign_in";
  const begin = () => setOpen("new");
  useKeys({
    ...(isSignedIn ? { c: begin } : {}),
    // Where something waits for an answer, `n` says no.
    ...(isSignedIn && !isAsked ? { n: () => areAnswerKeysQuiet() || begin() } : {}),
    "Mod+k": () => setOpen(open === "palette" ? undefined : "palette"),
    "?": () => setOpen("keys"),
    "/": () => document.querySelector<HTMLElement>("[data-search]")?.focus(),
    ...(route.page === "board" ? {} : { a: next }),
  });
  const leave = () => void signOut().finally(retry);
  const signedIn = () => {
    // It works once.
    setCode(undefined);
    navigate("/");
    retry();
  };
  const shown = () => {
    if (route.page === "sign_in" || link.state === "signed_out") {
      return <SignInPage {...(code === undefined ? {} : { code })} onSignedIn={signedIn} />;
    }
    switch (route.page) {
      case "board":
        if (!known) return <AwayPage link={link} retry={retry} />;
        return <BoardPage board={board} filter={filter} selected={selected} onSelect={setSelected} />;
      case "session":
        return <SessionPage key={route.sessionId} sessionId={route.sessionId} />;
      case "usage":
        return <UsagePage board={board} />;
      case "history":
        return <HistoryPage />;
      case "nowhere":
        return <Blank icon={Compass} title="There is no such page" />;
    }
  };
  return (
    <>
      <a className="skip-link" href="#main">
        Skip to the content
      </a>
      <TopBar
        page={route.page}
        hasBoard={route.page === "board" && known && link.state !== "signed_out"}
        summary={board.summary}
        link={link}
        filter={filter}
        onFilter={setFilter}
        onNew={begin}
        onBell={() => setOpen("bell")}
        onPalette={() => setOpen("palette")}
        onKeys={() => setOpen("keys")}
      />
      {known && <LinkBanner link={link} retry={retry} />}
      {known && isSignedIn && <TroubleBanner />}
      <main id="main" tabIndex={-1}>
        <h1 className="visually-hidden">{PAGE_NAMES[route.page]}</h1>
        {shown()}
      </main>
      <NoticeLine />
      <p className="visually-hidden" role="status">
        {waiting(board.summary.needsYouCount)}
      </p>
      {open === "new" && <NewSessionDialog onClose={() => setOpen(undefined)} />}
      {open === "bell" && <BellDialog onClose={() => setOpen(undefined)} />}
      {open === "keys" && <KeyHelp onClose={() => setOpen(undefined)} />}
      {open === "palette" && (
        <PaletteOfAll
          card={board.cards.get(acting ?? "")}
          onClose={() => setOpen(undefined)}
          onKeys={() => setOpen("keys")}
          onNew={begin}
          onNext={next}
          {...(isSignedIn ? { onSignOut: leave } : {})}
        />
      )}
    </>
  );
}

const waiting = (count: number) => (count === 1 ? "1 session needs you" : `${count} sessions need you`);

const PAGE_NAMES: Readonly<Record<Route["page"], string>> = {
  board: "Board",
  session: "Session",
  usage: "Usage",
  history: "History",
  sign_in: "Sign in",
  nowhere: "No such page",
};

/** What the tab, and the icon of an installed page, say. */
function useTitle(title: string, count: number): void {
  useEffect(() => {
    document.title = title;
  }, [title]);
  useEffect(() => {
    // Not every browser has badges, and none is needed.
    void navigator.setAppBadge?.(count).catch(() => undefined);
  }, [count]);
}

interface PaletteOfAllProps {
  /** The one that keys act on. */
  card: Card | undefined;
  onClose: () => void;
  onKeys: () => void;
  onNew: () => void;
  onNext: () => void;
  /** Where somebody is signed in. */
  onSignOut?: () => void;
}

function PaletteOfAll({ card: acting, onClose, onKeys, onNew, onNext, onSignOut }: PaletteOfAllProps) {
  const { board } = useLive();
  const { theme, shape } = useSettings();
  const lines = useMemo((): PaletteLine[] => {
    const groups = grouped(board.cards.values());
    const session = (card: Card): PaletteLine => ({
      key: card.sessionId,
      icon: iconOf(card),
      text: titleOfCard(card),
      note: card.agentState.label,
      act: () => navigate(sessionPath(card.sessionId)),
    });
    const otherShape = shape === "cards" ? "list" : "cards";
    return [
      ...(acting ? linesOf(acting) : []),
      { key: "new", icon: Plus, text: "New session", note: "c", act: onNew },
      { key: "next", icon: Compass, text: "Next session that needs you", note: "a", act: onNext },
      ...groups.needs_you.map(session),
      { key: "board", icon: Columns3, text: "Go to the board", act: () => navigate("/") },
      { key: "history", icon: History, text: "Go to History", act: () => navigate("/history") },
      { key: "usage", icon: ChartColumn, text: "Go to Usage", act: () => navigate("/usage") },
      {
        key: "shape",
        icon: LayoutList,
        text: `Show the board as ${otherShape}`,
        act: () => set({ shape: otherShape }),
      },
      {
        key: "theme",
        icon: SunMoon,
        text: `Theme: ${nextTheme(theme)}`,
        act: () => set({ theme: nextTheme(theme) }),
      },
      { key: "keys", icon: Keyboard, text: "Keyboard shortcuts", note: "?", act: onKeys },
      ...(onSignOut ? [{ key: "sign_out", icon: LogOut, text: "Sign out", act: onSignOut }] : []),
      ...groups.autonomous.map(session),
      ...groups.delivered.map(session),
    ];
  }, [board, theme, shape, acting, onKeys, onNew, onNext, onSignOut]);
  return <Palette lines={lines} onClose={onClose} />;
}
