import type { DiffLine } from "../diff";
import { REQUEST_LINES_MAX } from "../limits";
import { Visible } from "./visible";

const SIGNS = { same: " ", added: "+", removed: "-", gap: "" } as const;

/** A change, line by line; the sign says it as well as the colour. */
export function DiffText({ lines }: { lines: readonly DiffLine[] }) {
  return (
    // Long enough to scroll: keys must reach it.
    <pre className="code diff" tabIndex={lines.length > REQUEST_LINES_MAX + 1 ? 0 : undefined}>
      <span className="code-lines" data-read>
        {lines.map((line, index) => (
          <span key={index} className="diff-line" data-mark={line.mark}>
            <span className="diff-sign">{SIGNS[line.mark]}</span>
            {line.blanks === undefined ? (
              <Visible text={line.text} reading="code" />
            ) : (
              <span className="hidden-text">⟨{line.blanks} blank lines⟩</span>
            )}
            {"\n"}
          </span>
        ))}
      </span>
    </pre>
  );
}
