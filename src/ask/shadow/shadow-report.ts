import type { RedactedStatement } from '../request/redacted-statement.js';
import type { ColumnProtection, PlanComparison } from './compare-plans.js';

/** Maximum duration of a shadow policy, in seconds. */
export const LONGEST_SHADOW_SECONDS = 7 * 86_400;

/** Effects of a shadow policy. Each is counted in questions. */
export const EFFECTS = [
  'refused',
  'allowed',
  'masked',
  'shown',
  'narrower',
  'wider',
  'other_rows',
  'other_masks',
  'groups',
] as const;
export type Effect = (typeof EFFECTS)[number];

/** Questions of one caller for which the shadow policy would change the view of one object. Times are in RFC 3339. */
export interface ShadowRow extends Readonly<Record<Effect, number>> {
  /** The delegation chain, root first; the last subject is the caller. */
  readonly chain: readonly string[];
  readonly object: string;
  readonly questions: number;
  /** Codes of the refusals that would be added or lifted. */
  readonly codes: readonly string[];
  readonly masked_columns: readonly { readonly column: string; readonly mask: ColumnProtection }[];
  readonly shown_columns: readonly string[];
  readonly first_at: string;
  readonly last_at: string;
  /** The most frequent statements, without literals. */
  readonly examples: readonly ShadowExample[];
}

interface ShadowExample extends RedactedStatement {
  readonly questions: number;
}

/** Numbers of questions that were not compared, by reason. */
export interface UncomparedCounts {
  /** The queue of statements to compare was full. */
  readonly queue_full: number;
  /** The maximum number of statements or callers was reached. */
  readonly too_many: number;
  /** The manifest changed, and the shadow policy was not yet compiled for it or does not compile. */
  readonly model_changed: number;
  /** The question failed for a reason other than the policy, or the comparison failed. */
  readonly failed: number;
}

/** Figures of a comparison, in questions. */
export interface ShadowFigures {
  readonly questions: number;
  readonly same: number;
  readonly different: number;
  readonly waiting: number;
  readonly not_compared: UncomparedCounts;
  /** Most questions first; at most `MOST_ROWS`. */
  readonly rows: readonly ShadowRow[];
  readonly rows_left_out: number;
}

/** A statement with its difference. Times are in ms since the epoch. */
export interface ComparedStatement {
  readonly chain: readonly string[];
  readonly comparison: Exclude<PlanComparison, { kind: 'same' }>;
  readonly questions: number;
  readonly first: number;
  readonly last: number;
  readonly statement: RedactedStatement;
}

const MOST_ROWS = 500;
const MOST_EXAMPLES = 3;

export function reportOf(input: {
  readonly compared: readonly ComparedStatement[];
  readonly same: number;
  readonly waiting: number;
  readonly notCompared: UncomparedCounts;
}): ShadowFigures {
  const { compared, same, waiting, notCompared } = input;
  const different = compared.reduce((sum, { questions }) => sum + questions, 0);
  const left = Object.values<number>({ ...notCompared }).reduce((sum, n) => sum + n, 0);
  return {
    questions: same + different + waiting + left,
    same,
    different,
    waiting,
    not_compared: notCompared,
    ...mostFirst(mergedRows(compared.flatMap(rowsOf))),
  };
}

/** Adds up the figures of several processes. */
export function sumFigures(all: readonly ShadowFigures[]): ShadowFigures {
  const sum = (of: (figures: ShadowFigures) => number): number => all.reduce((n, one) => n + of(one), 0);
  const { rows, rows_left_out } = mostFirst(mergedRows(all.flatMap((one) => one.rows)));
  return {
    questions: sum((one) => one.questions),
    same: sum((one) => one.same),
    different: sum((one) => one.different),
    waiting: sum((one) => one.waiting),
    not_compared: {
      queue_full: sum((one) => one.not_compared.queue_full),
      too_many: sum((one) => one.not_compared.too_many),
      model_changed: sum((one) => one.not_compared.model_changed),
      failed: sum((one) => one.not_compared.failed),
    },
    rows,
    rows_left_out: rows_left_out + sum((one) => one.rows_left_out),
  };
}

function mostFirst(rows: readonly ShadowRow[]): Pick<ShadowFigures, 'rows' | 'rows_left_out'> {
  const sorted = rows.toSorted((a, b) => b.questions - a.questions);
  return { rows: sorted.slice(0, MOST_ROWS), rows_left_out: Math.max(0, sorted.length - MOST_ROWS) };
}

function rowsOf(compared: ComparedStatement): readonly ShadowRow[] {
  const { comparison, questions } = compared;
  switch (comparison.kind) {
    case 'refused':
    case 'allowed':
      return comparison.objects.map((object) => ({
        ...emptyRow(compared, object),
        [comparison.kind]: questions,
        codes: [comparison.code],
      }));
    case 'differs':
      return comparison.objects.map(({ object, masked, shown, rows, otherMasks, groups }) => {
        const counted = (holds: boolean): number => (holds ? questions : 0);
        return {
          ...emptyRow(compared, object),
          masked: counted(masked.size > 0),
          shown: counted(shown.length > 0),
          narrower: counted(rows === 'narrower'),
          wider: counted(rows === 'wider'),
          other_rows: counted(rows === 'other'),
          other_masks: counted(otherMasks),
          groups: counted(groups),
          masked_columns: [...masked].map(([column, mask]) => ({ column, mask })),
          shown_columns: shown,
        };
      });
  }
}

function emptyRow(compared: ComparedStatement, object: string): ShadowRow {
  const { chain, questions, first, last, statement } = compared;
  return {
    chain,
    object,
    questions,
    refused: 0,
    allowed: 0,
    masked: 0,
    shown: 0,
    narrower: 0,
    wider: 0,
    other_rows: 0,
    other_masks: 0,
    groups: 0,
    codes: [],
    masked_columns: [],
    shown_columns: [],
    first_at: new Date(first).toISOString(),
    last_at: new Date(last).toISOString(),
    examples: [{ ...statement, questions }],
  };
}

/** Merges the rows of each caller and object into one. */
function mergedRows(rows: readonly ShadowRow[]): readonly ShadowRow[] {
  const groups = new Map<string, ShadowRow[]>();
  for (const row of rows) {
    const key = JSON.stringify([row.chain, row.object]);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [row]);
    else group.push(row);
  }
  return [...groups.values()].flatMap(mergedRow);
}

function mergedRow(rows: readonly ShadowRow[]): readonly ShadowRow[] {
  const [first] = rows;
  if (first === undefined || rows.length === 1) return rows;
  const sum = (of: 'questions' | Effect): number => rows.reduce((n, row) => n + row[of], 0);
  const masks = new Map(
    rows.flatMap((row) => row.masked_columns.map((m) => [JSON.stringify(m), m] as const)),
  );
  return [
    {
      chain: first.chain,
      object: first.object,
      questions: sum('questions'),
      refused: sum('refused'),
      allowed: sum('allowed'),
      masked: sum('masked'),
      shown: sum('shown'),
      narrower: sum('narrower'),
      wider: sum('wider'),
      other_rows: sum('other_rows'),
      other_masks: sum('other_masks'),
      groups: sum('groups'),
      codes: distinct(rows.flatMap(({ codes }) => codes)),
      masked_columns: [...masks.keys()].sort().flatMap((key) => masks.get(key) ?? []),
      shown_columns: distinct(rows.flatMap(({ shown_columns }) => shown_columns)),
      first_at: rows.map((row) => row.first_at).sort()[0] ?? first.first_at,
      last_at:
        rows
          .map((row) => row.last_at)
          .sort()
          .at(-1) ?? first.last_at,
      examples: mergedExamples(rows.flatMap(({ examples }) => examples)),
    },
  ];
}

function mergedExamples(examples: readonly ShadowExample[]): readonly ShadowExample[] {
  const byFingerprint = new Map<string, ShadowExample>();
  for (const example of examples) {
    const questions = example.questions + (byFingerprint.get(example.fingerprint)?.questions ?? 0);
    byFingerprint.set(example.fingerprint, { ...example, questions });
  }
  return [...byFingerprint.values()].sort((a, b) => b.questions - a.questions).slice(0, MOST_EXAMPLES);
}

function distinct(items: readonly string[]): readonly string[] {
  return [...new Set(items)].sort();
}
