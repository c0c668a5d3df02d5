/** A piece of what was said: the words that were looked for lie between U+0002 and U+0003. Pure. */

export interface Piece {
  text: string;
  isFound: boolean;
}

export function piecesOf(snippet: string): Piece[] {
  const [first = "", ...rest] = snippet.split("\u0002");
  const pieces = rest.flatMap((part) => {
    const [found = "", ...after] = part.split("\u0003");
    return [
      { text: found, isFound: true },
      { text: after.join(""), isFound: false },
    ];
  });
  return [{ text: first, isFound: false }, ...pieces].filter((piece) => piece.text !== "");
}
