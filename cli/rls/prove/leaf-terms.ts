import type { Node } from '@pgsql/types';
import { boolean, columnKey, type Encoder, literalKey, NULL_KEY, TRUE } from '../../../policy/proof/index.js';
import { type ColumnOf, type Home, NotUnderstood } from './scope.js';
import { type CallerTerm, literalTerm, type Term, type TruthTerm, type ValueTerm } from './terms.js';

/** Columns and literals as terms. */

export const NULL_TERM: ValueTerm = {
  kind: 'value',
  value: { kind: 'opaque', isNull: TRUE },
  type: null,
  key: NULL_KEY,
  column: null,
  literal: null,
};

export function truthLiteral(literal: string): TruthTerm {
  const value = /^(t|true|on|yes|1)$/i.test(literal.trim());
  const isFalse = /^(f|false|off|no|0)$/i.test(literal.trim());
  if (!value && !isFalse) throw new NotUnderstood(`the literal ${literal} as boolean`);
  return {
    kind: 'truth',
    truth: { isTrue: boolean(value), isFalse: boolean(!value) },
    key: literalKey(String(value), 'bool'),
  };
}

export function columnTerm({ range, column }: ColumnOf, home: Home): Term {
  const { encoder } = home;
  if (range !== home.range) throw new NotUnderstood(`the column ${range.alias}.${column} of another table`);
  const own = range.entity?.columns.find(({ physical }) => physical === column);
  if (own === undefined) throw new NotUnderstood(`the column ${column}, which the model does not have`);
  const { type, stored } = own;
  const base = { kind: 'base' as const, column, type, ...(stored !== undefined && { stored }) };
  const key = columnKey(column);
  if (type === 'bool' && stored === undefined) return { kind: 'truth', truth: encoder.truth(base), key };
  const value = encoder.value(base);
  const found = encoder.columns.get(column) ?? null;
  // A type that OSL-SQL has as text may compare in another way than text does.
  const isPlain = stored === undefined || own.labels !== undefined || stored === 'name';
  return isPlain
    ? { kind: 'value', value, type, key, column: found, literal: null }
    : {
        kind: 'value',
        value: { kind: 'opaque', isNull: value.isNull },
        type: null,
        key,
        column: found,
        literal: null,
      };
}

export function constantTerm(node: Extract<Node, { A_Const: unknown }>, encoder: Encoder): Term {
  const { sval, ival, fval, boolval, isnull } = node.A_Const;
  if (isnull === true) return NULL_TERM;
  if (boolval !== undefined) return truthLiteral(String(boolval.boolval === true));
  if (ival !== undefined) return literalTerm(String(ival.ival ?? 0), 'int4', encoder);
  if (fval !== undefined) {
    const digits = fval.fval ?? '0';
    return literalTerm(digits, digits.includes('.') ? 'numeric' : 'int8', encoder);
  }
  if (sval === undefined) throw new NotUnderstood('a bit string');
  return { ...literalTerm(sval.sval ?? '', 'text', encoder), type: null };
}

export function isSameCaller(a: CallerTerm, b: CallerTerm): boolean {
  return a.attribute === b.attribute && a.type === b.type && a.otherwise === null && b.otherwise === null;
}
