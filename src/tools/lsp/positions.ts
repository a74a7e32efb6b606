import type { Position, Range } from 'vscode-languageserver/node';
import type { Range as FileRange } from '../../model/manifest/index.js';
import type { Place } from './yaml/find.js';

/** A range that counts from 1, as diagnostics do, counted from 0, as editors do; an empty one is a character wide. */
export function editorRange({ start, end }: FileRange): Range {
  const from = { line: start.line - 1, character: start.column - 1 };
  const to = { line: end.line - 1, character: end.column - 1 };
  const empty = from.line === to.line && from.character === to.character;
  return { start: from, end: empty ? after(to) : to };
}

function after({ line, character }: Position): Position {
  return { line, character: character + 1 };
}

export function placeRange({ line, start, end }: Place): Range {
  return { start: { line, character: start }, end: { line, character: end } };
}
