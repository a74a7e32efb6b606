export interface Caret {
  readonly line: number;
  readonly shown: string;
  /** Spaces, then one mark for each character of the word at the place. */
  readonly marks: string;
}

/** The line of `text` at a place, with marks under the word there; null where the place is not in it. Lines and columns count from 1. */
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
