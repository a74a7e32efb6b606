/**
 * Where the character `offset` of a scalar's value stands in the file. The file's form may differ from the
 * value: quotes, escapes, the header and the indentation of a block, folded lines. Both are walked side by
 * side, and what the file has more is stepped over.
 *
 * @param start of the scalar in `text`, as is `end`; UTF-16 units, like `offset`
 */
export function offsetInSource(
  text: string,
  start: number,
  end: number,
  value: string,
  offset: number,
): number {
  let at = contentStart(text, start, end);
  for (let i = 0; i < Math.min(offset, value.length); i++) {
    at = matching(text, at, end, value.charAt(i)) + 1;
  }
  if (offset < value.length) at = matching(text, at, end, value.charAt(offset));
  return Math.max(start, Math.min(at, end - 1));
}

function contentStart(text: string, start: number, end: number): number {
  const first = text.charAt(start);
  if (first === '|' || first === '>') {
    const newline = text.indexOf('\n', start);
    return newline === -1 || newline > end ? start : newline + 1;
  }
  return first === '"' || first === "'" ? start + 1 : start;
}

/** The place at or after `from` that shows `wanted`; a line break may stand for a blank, and the reverse. */
function matching(text: string, from: number, end: number, wanted: string): number {
  for (let at = from; at < end; at++) {
    const found = text.charAt(at);
    if (found === wanted || (isBlank(found) && isBlank(wanted))) return lastBlank(text, at, end, wanted);
  }
  return from;
}

/** A folded blank stands for a whole run of blanks: the next character follows the run. */
function lastBlank(text: string, at: number, end: number, wanted: string): number {
  if (wanted !== ' ' || text.charAt(at) === ' ') return at;
  let last = at;
  while (last + 1 < end && isBlank(text.charAt(last + 1))) last++;
  return last;
}

function isBlank(character: string): boolean {
  return character === ' ' || character === '\n' || character === '\t' || character === '\r';
}
