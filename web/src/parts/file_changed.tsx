import { REQUEST_LINES_MAX } from "../limits";
import type { FileChange } from "../patch";
import { DiffText } from "./diff_text";
import { Folded } from "./folded";

/** What is done to one file. */
export function FileChanged({ change: { file, note, lines } }: { change: FileChange }) {
  return (
    <>
      {(file !== undefined || note !== undefined) && (
        <p className="request-file">
          {file} {note !== undefined && <span className="file-note">{note}</span>}
        </p>
      )}
      {lines.length > 0 && (
        <Folded all={lines} shownMax={REQUEST_LINES_MAX} noun="lines">
          {(shown) => <DiffText lines={shown} />}
        </Folded>
      )}
    </>
  );
}
