export interface Caret {
  readonly line: number;
  readonly shown: string;
  /** Spaces, followed by one mark for each character of the word at the position. */
  readonly marks: string;
}

/** Line of `text` at a position counted from 1, with marks under the word there; null if outside the text. */
export function caretOf(
  text: string,
  { line, column }: { readonly line: number; readonly column: number },
): Caret | null {
  const shown = text.split('\n')[line - 1];
  if (shown === undefined || column < 1 || column > shown.length + 1) return null;
  const word = /^[\p{L}\p{N}_.$]+/u.exec(shown.slice(column - 1))?.[0] ?? ' ';
  const before = shown.slice(0, column - 1).replace(/[^\t]/g, ' ');
  return { line, shown, marks: before + '^'.repeat(Math.max(1, word.length)) };
}
