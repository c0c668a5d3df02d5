import { Fragment, type ReactNode, useMemo } from "react";

import { type Block, blocks, type Inline } from "../markdown";
import { Visible } from "./visible";

/** An agent's markdown, as elements. Nothing of it is ever HTML. */
export function MarkdownText({ text }: { text: string }) {
  const read = useMemo(() => blocks(text), [text]);
  return <div className="prose">{read.map((block, index) => drawn(block, index))}</div>;
}

function drawn(block: Block, key: number): ReactNode {
  switch (block.type) {
    case "heading":
      // Not an `h2`: an agent's headings are none of the page's outline.
      return (
        <p key={key} className="prose-heading" data-level={Math.min(block.level, 4)}>
          {spans(block.parts)}
        </p>
      );
    case "paragraph":
      return <p key={key}>{spans(block.parts)}</p>;
    case "item": {
      const marker = block.done === undefined ? block.marker : block.done ? "☑" : "☐";
      return (
        <p key={key} className="prose-item" data-depth={block.depth}>
          <span className="prose-marker">{marker}</span>
          <span>{spans(block.parts)}</span>
        </p>
      );
    }
    case "quote":
      return <blockquote key={key}>{spans(block.parts)}</blockquote>;
    case "table":
      return (
        <div key={key} className="prose-table">
          <table>
            <tbody>
              {block.rows.map((row, index) => (
                <tr key={index}>
                  {row.map((cell, column) => (
                    <td key={column}>{spans(cell)}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      );
    case "code":
      return (
        <pre key={key} className="code">
          <Visible text={block.text} reading="code" />
        </pre>
      );
    case "rule":
      return <hr key={key} />;
  }
}

function spans(parts: readonly Inline[]): ReactNode {
  return parts.map((part, key) => <Fragment key={key}>{span(part)}</Fragment>);
}

function span(part: Inline): ReactNode {
  switch (part.type) {
    case "text":
      return <Visible text={part.text} />;
    case "code":
      return (
        <code>
          <Visible text={part.text} reading="code" />
        </code>
      );
    case "strong":
      return <strong>{spans(part.parts)}</strong>;
    case "emphasis":
      return <em>{spans(part.parts)}</em>;
    case "link":
      return (
        <a href={part.address} target="_blank" rel="noreferrer noopener" title={part.address}>
          <Visible text={part.text} />
        </a>
      );
  }
}
