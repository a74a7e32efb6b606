import { type Choice, type Grain, keyOf } from '../choice/choice.js';
import type { Format } from './figure.js';

/** A column of an answer as the server describes it. */
export interface AnswerColumn {
  readonly name: string;
  readonly type: string;
  readonly redacted: boolean;
  readonly format?: Format | undefined;
}

export type Row = Readonly<Record<string, unknown>>;

/** What was answered for a choice: which column is a time, which are categories, which are figures. */
export interface Reading {
  /** The first group that is a time. */
  readonly time: { readonly column: AnswerColumn; readonly grain: Grain } | null;
  readonly categories: readonly AnswerColumn[];
  readonly figures: readonly AnswerColumn[];
  readonly rows: readonly Row[];
}

/** Answers name columns as declared, whatever the case in which they were asked for. */
export function readingOf(choice: Choice, columns: readonly AnswerColumn[], rows: readonly Row[]): Reading {
  const byName = new Map(columns.map((c) => [c.name.toLowerCase(), c]));
  const find = (name: string): readonly AnswerColumn[] => {
    const column = byName.get(name.toLowerCase());
    return column === undefined ? [] : [column];
  };
  const times = choice.groups.flatMap((group) =>
    group.grain === null ? [] : find(keyOf(group)).map((column) => ({ column, grain: group.grain as Grain })),
  );
  const time = times[0] ?? null;
  const categories = choice.groups.flatMap((g) => find(keyOf(g))).filter((c) => c !== time?.column);
  return { time, categories, figures: choice.metrics.flatMap(find), rows };
}

/** A value of a category as a word. What has none has a word for that. */
export function wordOf(value: unknown): string {
  if (value === null || value === undefined) return '(none)';
  if (value === '') return '(empty)';
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}
