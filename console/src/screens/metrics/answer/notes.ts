import type { Answer } from '../../../../../clients/typescript/types.js';

type Noted = Pick<
  Answer,
  | 'row_count'
  | 'truncated'
  | 'redacted_columns'
  | 'redacted_conditions'
  | 'partial_columns'
  | 'notices'
  | 'freshness'
>;

/** What an answer says of itself, in sentences. */
export function notesOf(answer: Noted): readonly string[] {
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
