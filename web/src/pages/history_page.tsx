import { History, SearchX } from "lucide-react";
import { useEffect, useState } from "react";

import { ask, type Refused } from "../api";
import { asRefused } from "../asked";
import { money, moment, projectOf, tokens } from "../amount";
import { duration } from "../amount";
import { harnessName } from "../harness";
import { HISTORY_PAGE, SEARCH_PAUSE_MS } from "../limits";
import { Blank } from "../parts/blank";
import { Link } from "../parts/link";
import { RefusedBlank } from "../parts/refused_blank";
import { sessionPath } from "../route";
import { piecesOf } from "../snippet";
import type { HistoryEntry, HistoryPage as Page } from "../wire";

const HARNESSES = ["claude_code", "codex", "gemini_cli", "opencode", "kilo_code", "cline", "acp", "native"];

/** Every session there ever was, the newest first, and a search in what was said. */
export function HistoryPage() {
  const [query, setQuery] = useState("");
  const [harness, setHarness] = useState("");
  const [project, setProject] = useState("");
  const { found, refused, more, again } = useHistory(query, harness, project);
  return (
    <div className="page">
      <form className="search" role="search" onSubmit={(event) => event.preventDefault()}>
        <input
          type="search"
          className="field"
          data-search
          aria-label="Search in titles, prompts and answers"
          placeholder="Search in titles, prompts and answers"
          value={query}
          onChange={(event) => setQuery(event.target.value)}
        />
        <input
          className="field"
          aria-label="Project"
          placeholder="Project"
          value={project}
          onChange={(event) => setProject(event.target.value)}
        />
        <select
          className="field"
          aria-label="Agent"
          value={harness}
          onChange={(event) => setHarness(event.target.value)}
        >
          <option value="">Every agent</option>
          {HARNESSES.map((name) => (
            <option key={name} value={name}>
              {harnessName(name)}
            </option>
          ))}
        </select>
      </form>
      {refused && <RefusedBlank refused={refused} again={again} />}
      {!refused && !found && <p className="quiet loading-line">Looking</p>}
      {!refused && found?.sessions.length === 0 && (
        <NothingFound searched={query !== "" || harness !== "" || project !== ""} />
      )}
      {!refused && found && found.sessions.length > 0 && (
        <>
          <ol className="history">
            {found.sessions.map((entry) => (
              <Entry key={entry.sessionId} entry={entry} />
            ))}
          </ol>
          {found.before !== undefined && (
            <button type="button" className="button older" onClick={more}>
              Show older
            </button>
          )}
        </>
      )}
    </div>
  );
}

function Entry({ entry }: { entry: HistoryEntry }) {
  return (
    <li className="past">
      <p className="past-head">
        <Link to={sessionPath(entry.sessionId)} className="past-title">
          {entry.title ?? `Session ${entry.sessionId.slice(0, 13)}`}
        </Link>
        <time className="number" dateTime={new Date(entry.endedAt).toISOString()}>
          {moment(entry.endedAt, Date.now())}
        </time>
      </p>
      {entry.snippet !== undefined && <Snippet text={entry.snippet} />}
      <ul className="facts">
        <li>{harnessName(entry.harness)}</li>
        {entry.project !== undefined && <li title={entry.project}>{projectOf(entry.project)}</li>}
        <li className="number">{duration(entry.endedAt - entry.startedAt)}</li>
        {entry.totalTokens !== undefined && <li className="number">{tokens(entry.totalTokens)} tok</li>}
        {entry.costUsd !== undefined && <li className="number">{money(entry.costUsd)}</li>}
      </ul>
    </li>
  );
}

function Snippet({ text }: { text: string }) {
  return (
    <p className="snippet">
      {piecesOf(text).map((piece, index) =>
        piece.isFound ? <mark key={index}>{piece.text}</mark> : <span key={index}>{piece.text}</span>,
      )}
    </p>
  );
}

function NothingFound({ searched }: { searched: boolean }) {
  return searched ? (
    <Blank icon={SearchX} title="No session was found" />
  ) : (
    <Blank icon={History} title="No past session yet">
      <p>Sessions come here when they end.</p>
    </Blank>
  );
}

interface Finding {
  found: Page | undefined;
  refused: Refused | undefined;
  more: () => void;
  again: () => void;
}

/** The first page a moment after the last key; the following ones when asked for. */
function useHistory(query: string, harness: string, project: string): Finding {
  const [found, setFound] = useState<Page>();
  const [refused, setRefused] = useState<Refused>();
  const [tries, setTries] = useState(0);
  const path = (before?: string) => {
    const wanted = new URLSearchParams({ limit: String(HISTORY_PAGE) });
    for (const [name, value] of Object.entries({
      q: query.trim(),
      harness,
      project: project.trim(),
      before,
    })) {
      if (value) wanted.set(name, value);
    }
    return `/api/history?${wanted.toString()}`;
  };
  useEffect(() => {
    const abort = new AbortController();
    const look = () => {
      setRefused(undefined);
      ask<Page>(path(), abort.signal).then(setFound, (error: unknown) => {
        if (!abort.signal.aborted) setRefused(asRefused(error));
      });
    };
    const timer = setTimeout(look, query === "" && project === "" ? 0 : SEARCH_PAUSE_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [query, harness, project, tries]);
  const more = () => {
    if (!found?.before) return;
    ask<Page>(path(found.before)).then(
      (page) => setFound({ ...page, sessions: [...found.sessions, ...page.sessions] }),
      (error: unknown) => setRefused(asRefused(error)),
    );
  };
  return { found, refused, more, again: () => setTries((count) => count + 1) };
}
