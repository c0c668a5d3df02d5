import { withoutBlankRuns } from "../diff";
import { REQUEST_LINES_MAX } from "../limits";
import type { FileChange } from "../patch";
import { DiffText } from "./diff_text";
import { Folded } from "./folded";
import { Visible } from "./visible";

/** What is done to one file. */
export function FileChanged({ change: { file, note, lines } }: { change: FileChange }) {
  return (
    <>
      {(file !== undefined || note !== undefined) && (
        <p className="request-file">
          {file !== undefined && <Visible text={file} reading="code" />}{" "}
          {note !== undefined && (
            <span className="file-note">
              <Visible text={note} reading="code" />
            </span>
          )}
        </p>
      )}
      {lines.length > 0 && (
        <Folded all={withoutBlankRuns(lines)} shownMax={REQUEST_LINES_MAX} noun="lines">
          {(shown) => <DiffText lines={shown} />}
        </Folded>
      )}
    </>
  );
}
