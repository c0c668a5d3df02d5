import { useNotice } from "../notices";

/** Read out as it comes, without taking the focus. */
export function NoticeLine() {
  const notice = useNotice();
  return (
    <div className="notice-place" role="status" aria-live="polite">
      {notice && (
        <p className="notice" data-failed={notice.failed || undefined}>
          {notice.text}
          {notice.undo && (
            <button type="button" className="notice-undo" onClick={notice.undo}>
              Undo
            </button>
          )}
        </p>
      )}
    </div>
  );
}
