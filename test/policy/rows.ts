import type { Access, Expr, MaskKind } from 'osl-compiler';
import type { EffectiveAccess } from '../../policy/access.js';

/** A row of the `order` entity; all that predicates of these tests look at. */
export interface Row {
  readonly region: string | null;
  readonly team: string | null;
}

/** SQL's three truth values. */
export type Truth = boolean | null;

export const not = (a: Truth): Truth => (a === null ? null : !a);
export const and = (list: readonly Truth[]): Truth =>
  list.includes(false) ? false : list.includes(null) ? null : true;
export const or = (list: readonly Truth[]): Truth =>
  list.includes(true) ? true : list.includes(null) ? null : false;

/** Evaluates the part of the IR that these tests' predicates use, apart from the emitter and from Postgres. */
export function truthOf(expr: Expr, row: Row, access: EffectiveAccess): Truth {
  switch (expr.kind) {
    case 'boolean':
      return expr.value;
    case 'and':
      return and(expr.args.map((e) => truthOf(e, row, access)));
    case 'or':
      return or(expr.args.map((e) => truthOf(e, row, access)));
    case 'not':
      return not(truthOf(expr.arg, row, access));
    case 'null_test':
      return (cellOf(expr.arg, row) === null) !== expr.negated;
    case 'attribute_match': {
      if (expr.subject === null) throw new Error('a predicate that is tied to no chain');
      const value = cellOf(expr.arg, row);
      return value === null
        ? null
        : access.attributeValues(expr.subject.index, expr.attribute).includes(value);
    }
    default:
      throw new Error(`these tests do not evaluate ${expr.kind}`);
  }
}

function cellOf(expr: Expr, row: Row): string | null {
  if (expr.kind !== 'base') throw new Error(`these tests do not evaluate ${expr.kind}`);
  if (expr.column === 'region') return row.region;
  if (expr.column === 'team') return row.team;
  throw new Error(`these tests have no column ${expr.column}`);
}

/** `row:column` of every cell of `order` that the caller reads in the clear, and `row` of every visible row. */
export function visible(
  access: EffectiveAccess,
  rows: readonly Row[],
  labels: ReadonlyMap<string, string | null>,
): ReadonlySet<string> {
  const order = access.relations.get('order');
  const seen = new Set<string>();
  for (const [i, row] of rows.entries()) {
    for (const grant of order?.grants ?? []) {
      if (grant.filter !== null && truthOf(grant.filter, row, access) !== true) continue;
      seen.add(`${i}`);
      for (const name of grant.columns) {
        const label = labels.get(name) ?? null;
        const clear = label === null || grant.unmask.has(label);
        if (clear && !order?.denied.has(name)) seen.add(`${i}:${name}`);
      }
    }
  }
  return seen;
}

/** An access as a plain value, for tables. */
export function show(access: Access, name: string): Shown | null {
  const found = access.relations.get(name);
  if (found === undefined) return null;
  return {
    grants: found.grants.map((g) => [...g.columns].join(',')),
    masks: [...found.masks],
    denied: [...found.denied],
  };
}

export interface Shown {
  readonly grants: readonly string[];
  readonly masks: readonly (readonly [string, MaskKind])[];
  readonly denied: readonly string[];
}
