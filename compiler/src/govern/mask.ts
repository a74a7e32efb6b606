import { filtersOf, type MaskKind, type RelationAccess, sameRows } from '../access/access.js';
import { type Column, columnOf, type Relation } from '../catalog/catalog.js';
import { assertNever, InternalError } from '../errors/errors.js';
import type { FunctionDefinition } from '../functions/define.js';
import { requireFunction, requireOperator } from '../functions/resolve.js';
import { fingerprint } from '../plan/fingerprint.js';
import {
  baseColumn,
  callNode,
  caseNode,
  castTo,
  FALSE,
  inType,
  nullOf,
  operationNode,
  TRUE,
} from '../plan/nodes.js';
import type { Expr, GovernedColumn } from '../plan/plan.js';
import type { TypeName } from '../types/types.js';
import { keyColumnName, visibleColumnName } from './column-names.js';
import { anyRow } from './folded-filters.js';
import type { GovernedSlots } from './slots.js';

/** The text shown for every masked text value. */
export const REDACTED = '[redacted]';

/** Extent to which a column is masked for a caller: in no, some or all rows. */
export type MaskExtent = GovernedColumn['masked'];

/** The policy for one column of one relation, for this caller. */
export interface ColumnRule {
  readonly column: Column;
  readonly masked: MaskExtent;
  readonly mask: MaskKind;
  /** Condition for the rows that show the column in the clear; used if `masked` is `some`. */
  readonly clear: Expr;
  /** Condition for the rows that show the column, masked or in the clear; null if every visible row does. */
  readonly covered: Expr | null;
}

/** Returns the predicate that visible rows satisfy; null if every row is visible. */
export function rowFilter(access: RelationAccess, slots: GovernedSlots): Expr | null {
  let filter = FILTERS.get(access);
  if (filter === undefined) {
    const filters = filtersOf(access.grants);
    FILTERS.set(access, (filter = filters === null ? null : anyRow(filters)));
  }
  return filter === null ? null : slots.ground(filter);
}

/** Row filters, cached because an access never changes. */
const FILTERS = new WeakMap<RelationAccess, Expr | null>();

export function columnRule(relation: Relation, name: string, access: RelationAccess): ColumnRule {
  let known = RULES.get(access);
  if (known?.relation !== relation) RULES.set(access, (known = { relation, rules: new Map() }));
  let rule = known.rules.get(name);
  if (rule === undefined) known.rules.set(name, (rule = ruleOf(relation, name, access)));
  return rule;
}

/** Column rules, cached because an access never changes. For each access, holds the rules of one relation at a time. */
const RULES = new WeakMap<RelationAccess, { relation: Relation; rules: Map<string, ColumnRule> }>();

function ruleOf(relation: Relation, name: string, access: RelationAccess): ColumnRule {
  const column = columnOf(relation, name);
  if (column === null) throw new InternalError(`relation ${relation.name} has no column ${name}`);
  const covering = access.grants.filter((g) => g.columns.has(name));
  if (covering.length === 0) throw new InternalError(`column ${name} of ${relation.name} is not granted`);
  const label = column.sensitivity;
  const clearing = covering.filter((g) => label === null || g.unmask.has(label));
  const declared = label === null ? 'redact' : (access.masks.get(label) ?? 'deny');
  // The binder refuses a column that is denied in every row. If some grant shows it in the clear, other rows redact it.
  const mask = declared === 'deny' && clearing.length > 0 ? 'redact' : maskFor(declared, column);
  const coversEveryRow = sameRows(covering, access.grants);
  const covered = coversEveryRow ? null : filtersOf(covering);
  const rule = { column, mask, covered: covered === null ? null : anyRow(covered) };
  if (sameRows(clearing, access.grants)) return { ...rule, masked: 'none', clear: FALSE };
  const clear = anyRow(filtersOf(clearing) ?? []);
  return { ...rule, masked: clearing.length === 0 ? 'all' : 'some', clear };
}

/** Returns the mask for a column of this type. Values that cannot be hashed, cut or truncated are redacted. */
function maskFor(kind: MaskKind, column: Column): MaskKind {
  if (kind === 'hash' || kind === 'partial') return isTextual(column) ? kind : 'redact';
  return kind === 'year' && !DATED.has(column.type) ? 'redact' : kind;
}

function isTextual({ type }: Column): boolean {
  return type === 'text' || type === 'bpchar';
}

function inTypeOf(column: Column, text: Expr): Expr {
  return inType(text, column.type);
}

const DATED: ReadonlySet<string> = new Set(['date', 'timestamp', 'timestamptz']);

/** True if the caller sees the column through a mask that computes on its value, which is never leakproof. */
export function maskComputes(rule: ColumnRule): boolean {
  return rule.masked !== 'none' && (rule.mask === 'hash' || rule.mask === 'partial' || rule.mask === 'year');
}

/** Returns the column as the caller sees it. */
export function maskedColumn(rule: ColumnRule, slots: GovernedSlots): GovernedColumn {
  return governedColumn(rule, rule.column.name, masking(rule, redact(rule.column), slots), slots);
}

/** Returns the column for joins: NULL instead of a mask, except for a keyed hash, which still matches. */
export function keyColumn(rule: ColumnRule, slots: GovernedSlots): GovernedColumn {
  const nothing = nullOf(rule.column.type);
  const hidden = rule.mask === 'hash' ? masking(rule, nothing, slots) : nothing;
  return governedColumn(rule, keyColumnName(rule.column.name), hidden, slots);
}

/** Returns the cell if it may be read in the clear, otherwise NULL: never a mask that reveals part of the value. */
export function clearColumn(rule: ColumnRule, slots: GovernedSlots): GovernedColumn {
  return governedColumn(rule, rule.column.name, nullOf(rule.column.type), slots);
}

/** Returns a flag that is true if the cell may be read in the clear, even if its value is NULL. */
export function visibleColumn(rule: ColumnRule, slots: GovernedSlots): GovernedColumn {
  const expr =
    rule.masked === 'none'
      ? TRUE
      : rule.masked === 'all'
        ? FALSE
        : caseNode(slots.ground(rule.clear), TRUE, FALSE);
  return Object.freeze({ name: visibleColumnName(rule.column.name), type: 'bool', expr, masked: 'none' });
}

function governedColumn(rule: ColumnRule, name: string, hidden: Expr, slots: GovernedSlots): GovernedColumn {
  const { column, masked, clear } = rule;
  const value = baseColumn(column);
  const expr: Expr =
    masked === 'none' ? value : masked === 'all' ? hidden : caseNode(slots.ground(clear), value, hidden);
  return Object.freeze({ name, type: column.type, expr, masked });
}

/**
 * Returns the masked value. If the mask reveals something about the value (hash, partial, year), it applies only to
 * rows of grants that cover the column; other rows show `plain`.
 */
function masking(rule: ColumnRule, plain: Expr, slots: GovernedSlots): Expr {
  const shown = maskOf(rule.mask, rule.column, slots);
  if (rule.covered === null || fingerprint(shown) === fingerprint(plain)) return shown;
  return caseNode(slots.ground(rule.covered), shown, plain);
}

function maskOf(kind: MaskKind, column: Column, slots: GovernedSlots): Expr {
  switch (kind) {
    case 'redact':
      return redact(column);
    case 'null':
      return nullOf(column.type);
    case 'hash':
      return hash(column, slots);
    case 'partial':
      return partial(column, slots);
    case 'year':
      return yearOnly(column, slots);
    case 'deny':
      throw new InternalError(`denied column ${column.name} reached a scan`);
    default:
      return assertNever(kind);
  }
}

function redact(column: Column): Expr {
  return isTextual(column) ? inTypeOf(column, structuralText(REDACTED)) : nullOf(column.type);
}

/** Returns the value as text, without the trailing blanks of a `char(n)`. */
function asText(column: Column): Expr {
  return inType(baseColumn(column), 'text');
}

/** Computes HMAC-SHA-256 of the text in hex, with pads sent as parameters: core Postgres has no hmac(). */
function hash(column: Column, slots: GovernedSlots): Expr {
  const domain = column.keyDomain ?? column.sensitivity ?? column.name;
  const bytes = maskCall('convert_to', [asText(column), structuralText('UTF8')]);
  const inner = maskCall('sha256', [textConcat('bytea', slots.pad('inner', domain), bytes)]);
  const outer = maskCall('sha256', [textConcat('bytea', slots.pad('outer', domain), inner)]);
  return inTypeOf(column, maskCall('encode', [outer, structuralText('hex')]));
}

/** Returns the first character and three stars. */
function partial(column: Column, slots: GovernedSlots): Expr {
  const first = maskCall('left', [asText(column), slots.literal('1', 'int4')]);
  return inTypeOf(column, textConcat('text', first, structuralText('***')));
}

function yearOnly(column: Column, slots: GovernedSlots): Expr {
  const base = baseColumn(column);
  const year: Expr = structuralText('year');
  if (column.type === 'timestamp') return maskCall('date_trunc', [year, base]);
  if (column.type === 'timestamptz')
    return maskCall('date_trunc', [year, base, slots.literal('UTC', 'text')]);
  const stamp: Expr = castTo(base, 'timestamp');
  return castTo(maskCall('date_trunc', [year, stamp]), 'date');
}

function structuralText(text: string): Expr {
  return Object.freeze({ kind: 'structural', text, type: 'text' });
}

/** Functions that masks call but callers may not name. */
const PRIVATE: ReadonlyMap<string, FunctionDefinition> = new Map(
  (
    [
      ['sha256', ['bytea'], 'bytea'],
      ['convert_to', ['text', 'text'], 'bytea'],
      ['encode', ['bytea', 'text'], 'text'],
    ] as const
  ).map(([name, args, result]) => [
    name,
    Object.freeze({
      name,
      kind: 'scalar',
      arguments: Object.freeze([...args]),
      variadic: null,
      result,
      volatility: 'immutable',
      leakproof: false,
      structural: new Map(),
    } satisfies FunctionDefinition),
  ]),
);

/** Creates a function call for a mask; the arguments must have exactly the types that `name` takes. */
function maskCall(name: string, args: readonly Expr[]): Expr {
  const own = PRIVATE.get(name);
  if (own !== undefined) return callNode(own, args, own.result as TypeName); // no private function is polymorphic
  const types = args.map((a) => a.type);
  const { definition, result } = requireFunction(name, types);
  return callNode(definition, args, result);
}

function textConcat(type: 'text' | 'bytea', left: Expr, right: Expr): Expr {
  return operationNode(requireOperator('||', type, type), left, right, type);
}
