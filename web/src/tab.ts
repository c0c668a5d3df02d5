/** The name of this tab, under which the server knows its stream and whether somebody looks at it. */
export const TAB = Array.from(crypto.getRandomValues(new Uint8Array(8)), (byte) =>
  byte.toString(16).padStart(2, "0"),
).join("");
