import { clock, words } from "../amount";
import type { AgentState, EvidenceLine } from "../wire";

interface Props {
  state: AgentState;
  lines: readonly EvidenceLine[];
}

/** Why it says so: the rule, how sure, and the last word of each source. */
export function EvidenceList({ state, lines }: Props) {
  const heard = [...state.evidence].sort((a, b) => b.at - a.at);
  return (
    <div className="evidence">
      <p>
        <strong>{state.label}</strong>, because {state.rule || "nothing else is known"}.
      </p>
      <p className="quiet">
        Told by {state.source}, {Math.round(state.confidence * 100)}% sure, at {clock(state.since)}.
      </p>
      {heard.length > 0 && (
        <table>
          <caption>Last signal of each source</caption>
          <tbody>
            {heard.map(({ source, at, event }) => (
              <tr key={source}>
                <th scope="row">{source}</th>
                <td>{words(event)}</td>
                <td className="number">{clock(at)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {lines.length > 0 && (
        <table>
          <caption>What was learnt, newest first</caption>
          <tbody>
            {[...lines]
              .sort((a, b) => b.at - a.at)
              .map(({ at, source, text }, index) => (
                <tr key={index}>
                  <th scope="row">{source}</th>
                  <td>{text}</td>
                  <td className="number">{clock(at)}</td>
                </tr>
              ))}
          </tbody>
        </table>
      )}
    </div>
  );
}
