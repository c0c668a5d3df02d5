import type { DiffLine } from "../diff";

const SIGNS = { same: " ", added: "+", removed: "-", gap: "" } as const;

/** A change, line by line; the sign says it as well as the colour. */
export function DiffText({ lines }: { lines: readonly DiffLine[] }) {
  return (
    <pre className="code diff">
      {lines.map((line, index) => (
        <span key={index} className="diff-line" data-mark={line.mark}>
          <span className="diff-sign">{SIGNS[line.mark]}</span>
          {line.text}
          {"\n"}
        </span>
      ))}
    </pre>
  );
}
