import type { Answer, AnswerColumn, ValueFormat } from '../../../../../clients/typescript/types.js';
import { type Choice, keyOf, type TimeGrain } from '../choice/choice.js';

/** A column of an answer, as described by the server. */
export type MetricsColumn = Pick<AnswerColumn, 'name' | 'type' | 'redacted' | 'format'>;

export type MetricsRow = Readonly<Record<string, unknown>>;

/** Roles of the columns in an answer: time, categories and figures (the values of metrics). */
export interface MetricsReading {
  /** The column of the first group that is a time, with its grain; null if no group is a time. */
  readonly time: { readonly column: MetricsColumn; readonly grain: TimeGrain } | null;
  readonly categories: readonly MetricsColumn[];
  readonly figures: readonly MetricsColumn[];
  readonly rows: readonly MetricsRow[];
}

/** Assigns roles to the columns of an answer, matching column names to the request regardless of case. */
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

/** Returns the label of a category's value: `(none)` for NULL, `(empty)` for '', otherwise its text. */
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

/** Returns the notes on an answer as sentences: number of rows, masking, notices and freshness. */
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

/** Returns a figure as a number; null if it is not a finite number. Very precise numbers arrive as text. */
export function numberOf(value: unknown): number | null {
  if (typeof value === 'number') return Number.isFinite(value) ? value : null;
  if (typeof value !== 'string' || value.trim() === '') return null;
  const number = Number(value);
  return Number.isFinite(number) ? number : null;
}

/** Formats a figure: a number in `format`, any other value as text, a missing value as an empty string. */
export function shownFigure(value: unknown, format: ValueFormat | null | undefined): string {
  if (value === null || value === undefined) return '';
  const number = numberOf(value);
  if (number === null) return typeof value === 'object' ? JSON.stringify(value) : String(value);
  return (
    formatter(format ?? null).format(exact(value, number)) +
    (format?.unit === undefined ? '' : ` ${format.unit}`)
  );
}

/** Prepares a figure for `Intl.NumberFormat`, keeping all digits of precise numbers that arrive as text. */
function exact(value: unknown, number: number): number | Intl.StringNumericLiteral {
  return typeof value === 'string' && /^-?\d+(\.\d+)?$/.test(value)
    ? (value as Intl.StringNumericLiteral)
    : number;
}

function formatter(format: ValueFormat | null): Intl.NumberFormat {
  const decimals =
    format?.decimals === undefined
      ? { maximumFractionDigits: 2 }
      : { minimumFractionDigits: format.decimals, maximumFractionDigits: format.decimals };
  switch (format?.kind) {
    case 'percent':
      return new Intl.NumberFormat('en', {
        style: 'percent',
        maximumFractionDigits: 1,
        ...(format.decimals === undefined ? {} : decimals),
      });
    case 'currency':
      return new Intl.NumberFormat('en', {
        ...currencyOf(format),
        ...(format.decimals === undefined ? {} : decimals),
      });
    case 'number':
    case undefined:
      return new Intl.NumberFormat('en', decimals);
  }
}

/** Returns the currency style if the manifest's code has three letters as in ISO 4217, otherwise no style. */
function currencyOf({ currency = '' }: ValueFormat): Intl.NumberFormatOptions {
  return /^[A-Z]{3}$/.test(currency) ? { style: 'currency', currency } : {};
}

/** Returns the relative change of a figure: 0.1 for 10 % more; null if a value is not a number or `before` is 0. */
export function changeOf(now: unknown, before: unknown): number | null {
  const [a, b] = [numberOf(now), numberOf(before)];
  return a === null || b === null || b === 0 ? null : (a - b) / Math.abs(b);
}

const PERCENT = new Intl.NumberFormat('en', {
  style: 'percent',
  maximumFractionDigits: 1,
  signDisplay: 'exceptZero',
});

/** Formats a relative change: `+3.1%`. */
export function shownChange(change: number): string {
  return PERCENT.format(change);
}
