import type { Language, Login } from '../endpoint.js';
import type { Source } from './sources.js';

export const CLASSES = [
  'errors',
  'predicates',
  'joins',
  'aggregates',
  'casts',
  'catalog',
  'cursors',
  'copy',
  'session',
  'identity',
  'inference',
  'timing',
] as const;
export type AttackClass = (typeof CLASSES)[number];

/** Statements of one session that may tell hidden data. */
export interface Attack {
  /** `errors-07`: the class, and a number that does not change. */
  readonly id: string;
  readonly class: AttackClass;
  readonly steps: readonly string[];
  /** Parameters of the last step. */
  readonly values?: readonly (string | null)[];
  readonly login?: Login;
  /** Statements that every other caller asks before the clerk, in sessions that stay open. */
  readonly before?: readonly string[];
  /** Statements that the clerk asks before the other callers, in the same session as `steps`. */
  readonly first?: readonly string[];
  /** SQL by default. */
  readonly language?: Language;
  /** Where it is known from. */
  readonly source: string;
  /** Property of an endpoint that stops it. */
  readonly defence: string;
}

/** One attack in a table: its statements, or these with what is not as usual. */
type Row = string | readonly string[] | Written;

interface Written extends Partial<Pick<Attack, 'values' | 'login' | 'before' | 'first' | 'language'>> {
  readonly ask: string | readonly string[];
}

type Sourced = Omit<Attack, 'id' | 'class'>;

/** Attacks that are known from one source, and stopped by one defence. */
export function from({ source, defence }: Source, rows: readonly Row[]): readonly Sourced[] {
  return rows.map((row) => {
    const { ask, ...more } = isWritten(row) ? row : { ask: row };
    return { steps: typeof ask === 'string' ? [ask] : ask, ...more, source, defence };
  });
}

/** Attacks of a class, numbered in order: add new ones at the end. */
export function attacks(of: AttackClass, rows: readonly Sourced[]): readonly Attack[] {
  return rows.map((row, i) => ({ id: `${of}-${String(i + 1).padStart(2, '0')}`, class: of, ...row }));
}

function isWritten(row: Row): row is Written {
  return typeof row === 'object' && 'ask' in row;
}
