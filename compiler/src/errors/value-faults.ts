import { SCALAR_TYPES, typeRow } from '../types/types.js';

/** Returns a hint with an example of a literal of `type`; null if there is no example for the type. */
export function literalHint(type: string): string | null {
  const [element = type] = type.split('[]');
  const scalar = SCALAR_TYPES.find((known) => known === element);
  if (scalar === undefined) return null;
  const { bounds, example } = typeRow(scalar);
  if (type !== scalar) return `write an array as '{${arrayItem(example)}}'`;
  return bounds === null
    ? `write a value of type ${scalar} as '${example}'`
    : `values of type ${scalar} are whole numbers ${bounds}`;
}

function arrayItem(text: string): string {
  return /^[\w.:+-]+$/.test(text) ? text : `"${text.replace(/["\\]/g, '\\$&')}"`;
}

/** The SQLSTATEs for a value out of range for its type. With any other SQLSTATE, the text has the wrong form. */
export const OUT_OF_RANGE: ReadonlySet<string> = new Set(['22003', '22008']);

export type CountClause = 'LIMIT' | 'OFFSET';

/** The SQLSTATE that Postgres gives for a negative count, by clause. */
export const NEGATIVE_COUNTS: Readonly<Record<CountClause, string>> = { LIMIT: '2201W', OFFSET: '2201X' };

type FaultText = readonly [message: string, hint: string | null];

/** The messages for evaluation errors, by SQLSTATE. The database's own messages could contain values. */
export const EVALUATION_FAULTS: ReadonlyMap<string, FaultText> = new Map<string, FaultText>([
  ['21000', ['a subquery used as a value returned more than one row', 'give it an aggregate, or LIMIT 1']],
  [
    '22000',
    ['a value is not valid where it is used', 'the lower bound of a range must not be above its upper'],
  ],
  ['22003', ['a number is out of range', 'compute in a wider type, such as `x::numeric`']],
  [
    '22007',
    ['a date or time does not have the form that its pattern describes', 'the text must match the format'],
  ],
  ['22008', ['a date or time is out of range', 'its day must exist, and lie between 4713 BC and 294276 AD']],
  ['22011', ['the length of a substring is negative', 'use `greatest(x, 0)` as the length']],
  ['22012', ['division by zero', 'divide by `nullif(x, 0)`, which gives NULL for zero']],
  ['22014', ['the argument of ntile must be greater than zero', 'count from 1']],
  ['22016', ['the argument of nth_value must be greater than zero', 'count from 1']],
  [
    '2201B',
    [
      'a regular expression is not valid',
      'a backslash makes a special character an ordinary one, as in `\\(`',
    ],
  ],
  [
    '2201E',
    [
      'the argument of a logarithm is out of range',
      'take it of values above zero: `case when x > 0 then ln(x) end`',
    ],
  ],
  ['2201F', ['the argument of a power or root is out of range', 'take a root of `greatest(x, 0)`']],
  [
    '2201G',
    ['the arguments of width_bucket are out of range', 'its bounds must differ, its count be above zero'],
  ],
  ['22021', ['a text holds a character that its encoding does not have', 'leave the character out']],
  [
    '22023',
    [
      'an argument has a value that its function does not take',
      'look at its constants: a zone, a unit, a step',
    ],
  ],
  ['22025', ['an escape in a pattern is not valid', 'write a backslash that stands for itself twice']],
  [
    '22P02',
    ['a value does not have the form of its type', 'leave out what has another form, with WHERE or CASE'],
  ],
  ['22P03', ['the bytes of a parameter are no value of its type', 'send it in text format']],
  ['2202E', ['an array subscript is out of range', 'use a smaller one']],
  [
    '42601',
    [
      'a text search query, or a path, is not well formed',
      'join words with `&` or `|`; begin a path with `$`',
    ],
  ],
  [
    '54000',
    [
      'a value, or the number of rows that a function or recursive query makes, exceeds its limit',
      'a series or a recursive query has at most 1,000,000 rows, a value 1 GB, and a text no character of number 0',
    ],
  ],
  ['54001', ['the statement is too complex for the database', 'ask in several smaller statements']],
]);

/** True if the SQLSTATE means that a statement failed because of its values, or of values computed from them. */
export function isEvaluationFault(sqlstate: string): boolean {
  return sqlstate.startsWith('22') || sqlstate.startsWith('54') || sqlstate === '21000';
}
