import { Fragment, useMemo } from "react";

import { type Piece, type Reading, visible } from "../visible";

/** What an agent wrote, with a mark in the place of each character that would not be seen. */
export function Visible({ text, reading = "prose" }: { text: string; reading?: Reading }) {
  return <Pieces pieces={useMemo(() => visible(text, reading), [text, reading])} />;
}

export function Pieces({ pieces }: { pieces: readonly Piece[] }) {
  return pieces.map((piece, index) =>
    piece.mark ? (
      <span key={index} className="hidden-text">
        {piece.text}
      </span>
    ) : (
      <Fragment key={index}>{piece.text}</Fragment>
    ),
  );
}
