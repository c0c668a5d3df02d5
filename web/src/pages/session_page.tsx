import { Copy } from "lucide-react";
import { useEffect, useReducer, useState } from "react";

import { useAsked } from "../asked";
import { missing } from "../actions";
import { answerKeys } from "../answer_keys";
import { canBeDismissed } from "../board";
import { contextOf, fullPlaceOf, titleOfCard } from "../card_text";
import { useNow } from "../clock";
import { copy, dismiss } from "../commands";
import { useKeys } from "../keys";
import { DRIVEN_LOOK_MS, LAST_WORDS_MS, MESSAGES_PAGE, SESSION_LOOK_MS, WORKING_LOOK_MS } from "../limits";
import { useCard } from "../live";
import { useNarrow } from "../narrow";
import { usePaced } from "../paced";
import { CardFacts } from "../parts/card_facts";
import { Elapsed } from "../parts/elapsed";
import { EvidenceList } from "../parts/evidence_list";
import { GroupBar, TimeLegend, timeWords } from "../parts/group_bar";
import { RefusedBlank } from "../parts/refused_blank";
import { RequestBox } from "../parts/request_box";
import { RunTimeline } from "../parts/run_timeline";
import { SessionActs } from "../parts/session_acts";
import { Place } from "../parts/session_card";
import { TranscriptPane } from "../parts/transcript_pane";
import { UsageTable } from "../parts/usage_table";
import { Visible } from "../parts/visible";
import { segments, timeIn } from "../spans";
import { iconOf } from "../sub_state";
import type { Card, GroupSpan, SessionDetail } from "../wire";
import { DrivenConversation, DrivenHead } from "./driven_page";

/** One session: what was said, what ran, why it is seen as it is, what it used. */
export function SessionPage({ sessionId }: { sessionId: string }) {
  const live = useCard(sessionId);
  const [messages, setMessages] = useState(MESSAGES_PAGE);
  const path = `/api/live/sessions/${encodeURIComponent(sessionId)}`;
  const wanted = live?.driven && messages > MESSAGES_PAGE ? `${path}?messages=${messages}` : path;
  const turn = useTurn(live);
  const { asked, again } = useAsked<SessionDetail>(wanted, turn);
  const detail = asked.state === "there" ? asked.value : undefined;
  const card = live ?? detail?.card;
  const narrow = useNarrow();
  const [pane, setPane] = useState<"transcript" | "details">("transcript");
  useKeys({
    ...answerKeys(card),
    e: () => {
      if (card && canBeDismissed(card)) void dismiss(card);
    },
  });
  if (!card && asked.state === "refused") return <RefusedBlank refused={asked.refused} again={again} />;
  if (!card) return <p className="quiet loading-line">Looking for the session</p>;
  return (
    <div
      className="session"
      data-session={card.sessionId}
      data-group={card.agentState.group}
      data-state={card.agentState.state}
    >
      {card.driven ? <DrivenHead card={card} past={detail?.attached} /> : <SessionHead card={card} />}
      {narrow && (
        <div className="tabs is-plain" role="group" aria-label="Parts of the session">
          <button type="button" aria-pressed={pane === "transcript"} onClick={() => setPane("transcript")}>
            {card.driven ? "Conversation" : "Transcript"}
          </button>
          <button type="button" aria-pressed={pane === "details"} onClick={() => setPane("details")}>
            Details
          </button>
        </div>
      )}
      <div className="session-body">
        {(!narrow || pane === "transcript") && (
          <section
            className={card.driven ? "session-transcript is-driven" : "session-transcript"}
            aria-label="What was said"
          >
            {card.driven ? (
              <DrivenConversation
                card={card}
                past={detail?.attached}
                onEarlier={() => setMessages((count) => count + 2 * MESSAGES_PAGE)}
              />
            ) : (
              <TranscriptPane sessionId={card.sessionId} signal={turn} />
            )}
          </section>
        )}
        {(!narrow || pane === "details") && (
          <aside className="session-aside" aria-label="Details" tabIndex={0}>
            {card.resumeCommand !== undefined && !card.driven && <Resume command={card.resumeCommand} />}
            <Part title="Why does it say so?">
              <EvidenceList state={card.agentState} lines={detail?.evidence ?? []} />
            </Part>
            {detail && detail.groups.length > 0 && <TimeInGroups spans={detail.groups} />}
            <Part title="Runs">
              {asked.state === "refused" ? (
                <p className="quiet">Not known: {asked.refused.message}.</p>
              ) : (
                <RunTimeline runs={detail?.runs ?? []} />
              )}
            </Part>
            <Part title="Usage">
              <UsageTable usage={card.usage} />
            </Part>
            <Part title="Where">
              <WhereTable card={card} />
            </Part>
            {!card.driven && <NotPossible card={card} />}
          </aside>
        )}
      </div>
    </div>
  );
}

/** Rises when the session may have more to show: when its card changes, and now and then while it works. */
function useTurn(card: Card | undefined): number {
  const [turn, next] = useReducer((count: number) => count + 1, 0);
  const beat = useNow((now) => (card && isAlive(card, now) ? Math.floor(now / WORKING_LOOK_MS) : 0));
  const changed = usePaced(card, card?.driven ? DRIVEN_LOOK_MS : SESSION_LOOK_MS);
  useEffect(next, [beat, changed]);
  return turn;
}

/** At work, or so lately that the last words may not be written yet. */
const isAlive = (card: Card, now: number) =>
  card.agentState.group === "autonomous" || now - card.lastSignal < LAST_WORDS_MS;

function SessionHead({ card }: { card: Card }) {
  const narrow = useNarrow();
  const Icon = iconOf(card);
  const context = contextOf(card);
  return (
    <header className="session-head">
      <div className="card-head">
        <h2 className="session-title">{titleOfCard(card)}</h2>
      </div>
      <p className="card-state">
        <span className="badge">
          <Icon aria-hidden="true" size={14} />
          <Visible text={card.agentState.label} />
        </span>
        <Elapsed since={card.agentState.since} />
        <Place card={card} />
      </p>
      <CardFacts card={card} />
      {context && (
        <p className={context.isCode ? "card-context is-code" : "card-context"}>
          <Visible text={context.text} reading={context.isCode ? "code" : "prose"} />
        </p>
      )}
      {card.requests.map((request) => (
        <RequestBox key={request.key ?? request.requestId} card={card} request={request} />
      ))}
      <SessionActs card={card} full={!narrow} onDismiss={(each) => void dismiss(each)} />
    </header>
  );
}

function Part({ title, children }: { title: string; children: React.ReactNode }) {
  return (
    <section className="part">
      <h3>{title}</h3>
      {children}
    </section>
  );
}

function Resume({ command }: { command: string }) {
  return (
    <Part title="Resume in a terminal">
      <div className="copy-line">
        <pre className="code">
          <Visible text={command} reading="code" />
        </pre>
        <button
          type="button"
          className="icon-button"
          aria-label="Copy the command"
          title="Copy"
          onClick={() => void copy(command)}
        >
          <Copy aria-hidden="true" size={16} />
        </button>
      </div>
    </Part>
  );
}

function TimeInGroups({ spans }: { spans: readonly GroupSpan[] }) {
  const lasting = spans.some((span) => span.to === undefined);
  const now = useNow((at) => (lasting ? at : 0));
  const time = timeIn(spans, now);
  return (
    <Part title="Time in each group">
      <GroupBar segments={segments(spans, now)} label={timeWords(time)} />
      <TimeLegend time={time} />
    </Part>
  );
}

/** What cannot be done from here, and why. */
function NotPossible({ card }: { card: Card }) {
  const lines = missing(card);
  if (lines.length === 0) return null;
  return (
    <Part title="Not possible from here">
      <dl className="pairs">
        {lines.map(([name, why]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{why}</dd>
          </div>
        ))}
      </dl>
    </Part>
  );
}

function WhereTable({ card }: { card: Card }) {
  const lines: readonly (readonly [string, string | undefined])[] = [
    ["Folder", card.cwd],
    ["Branch", card.branch],
    ["Runs in", card.where && fullPlaceOf(card.where)],
    ["Also open in", card.alsoOpenIn?.map(fullPlaceOf).join(", ")],
    ["Transcript", card.transcript],
    ["Session", card.vendorId],
    ["Went on from", card.forkedFrom],
    ["Version", card.versionNote ? `${card.version}, ${card.versionNote}` : card.version],
    ["Messages not understood", card.unrecognised > 0 ? String(card.unrecognised) : undefined],
  ];
  return (
    <dl className="pairs">
      {lines
        .filter(([, value]) => value)
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd className="path">
              <Visible text={value ?? ""} reading="code" />
            </dd>
          </div>
        ))}
    </dl>
  );
}
