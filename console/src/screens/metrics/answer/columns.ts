import type { Answer } from '../../../../../clients/typescript/types.js';
import { type Choice, keyOf, type TimeGrain } from '../choice/choice.js';
import type { FigureFormat } from './figure.js';

/** A column of an answer, as described by the server. */
export interface MetricsColumn {
  readonly name: string;
  readonly type: string;
  readonly redacted: boolean;
  readonly format?: FigureFormat | undefined;
}

export type MetricsRow = Readonly<Record<string, unknown>>;

/** Roles of the columns in an answer: time, categories and figures. */
export interface MetricsReading {
  /** The first group that is a time. */
  readonly time: { readonly column: MetricsColumn; readonly grain: TimeGrain } | null;
  readonly categories: readonly MetricsColumn[];
  readonly figures: readonly MetricsColumn[];
  readonly rows: readonly MetricsRow[];
}

/** Assigns roles to the columns of an answer. They are named as declared, even if the request used a different case. */
export function readingOf(
  choice: Choice,
  columns: readonly MetricsColumn[],
  rows: readonly MetricsRow[],
): MetricsReading {
  const byName = new Map(columns.map((c) => [c.name.toLowerCase(), c]));
  const find = (name: string): readonly MetricsColumn[] => {
    const column = byName.get(name.toLowerCase());
    return column === undefined ? [] : [column];
  };
  const times = choice.groups.flatMap((group) =>
    group.grain === null
      ? []
      : find(keyOf(group)).map((column) => ({ column, grain: group.grain as TimeGrain })),
  );
  const time = times[0] ?? null;
  const categories = choice.groups.flatMap((g) => find(keyOf(g))).filter((c) => c !== time?.column);
  return { time, categories, figures: choice.metrics.flatMap(find), rows };
}

/** Value of a category as text; missing values are labelled too. */
export function wordOf(value: unknown): string {
  if (value === null || value === undefined) return '(none)';
  if (value === '') return '(empty)';
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

type AnswerRemarks = Pick<
  Answer,
  | 'row_count'
  | 'truncated'
  | 'redacted_columns'
  | 'redacted_conditions'
  | 'partial_columns'
  | 'notices'
  | 'freshness'
>;

/** Notes on an answer, as sentences. */
export function notesOf(answer: AnswerRemarks): readonly string[] {
  const { row_count, truncated, redacted_columns, redacted_conditions, partial_columns, notices, freshness } =
    answer;
  const rows = `${row_count.toLocaleString('en')} ${row_count === 1 ? 'row' : 'rows'}`;
  return [
    truncated ? `${rows}; a cap held others back.` : `${rows}.`,
    ...of(redacted_columns, 'Masked for you: '),
    ...of(redacted_conditions, 'Masked for you, and used in a filter or a group: '),
    ...of(partial_columns, 'Without the rows in which it is masked for you: '),
    ...(notices ?? []),
    ...(freshness === undefined || freshness.from === 'live'
      ? []
      : [`As of ${freshness.as_of}, from a ${freshness.from}.`]),
  ];
}

function of(names: readonly string[] | undefined, lead: string): readonly string[] {
  return names === undefined || names.length === 0 ? [] : [`${lead}${names.join(', ')}.`];
}
