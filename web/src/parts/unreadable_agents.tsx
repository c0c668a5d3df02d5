import { EyeOff } from "lucide-react";

import { projectOf } from "../amount";
import type { UnreadableAgent } from "../wire";
import { Elapsed } from "./elapsed";
import { Visible } from "./visible";

/** Agents that run and cannot be read: which, where, why not, and what would help. Nothing else. */
export function UnreadableAgents({ agents }: { agents: readonly UnreadableAgent[] }) {
  if (agents.length === 0) return null;
  return (
    <section className="unreadable" aria-label="Running, not readable">
      {agents.map((agent) => (
        <article key={agent.pid} className="card" data-state="unreadable">
          <header className="card-head">
            <h3 className="card-title">
              <Visible text={agent.product} />
            </h3>
            {agent.startedAt !== undefined && <Elapsed since={agent.startedAt} />}
          </header>
          <p className="card-state">
            <span className="badge">
              <EyeOff aria-hidden="true" size={14} />
              Running, not readable
            </span>
            {agent.cwd !== undefined && (
              <span className="fact" title={agent.cwd}>
                <Visible text={projectOf(agent.cwd)} reading="code" />
              </span>
            )}
            <span className="fact">pid {agent.pid}</span>
            {agent.tty !== undefined && <span className="fact">{agent.tty}</span>}
          </p>
          <p className="card-context">
            <Visible text={`${agent.why} ${agent.help}`} />
          </p>
        </article>
      ))}
    </section>
  );
}
