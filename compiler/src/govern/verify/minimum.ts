import { InternalError } from '../../errors/errors.js';
import { fingerprint } from '../../plan/fingerprint.js';
import {
  type Aggregate,
  type Expr,
  GROUP_KEY,
  groupValue,
  isGroupColumn,
  type Query,
  type Select,
  type Slot,
} from '../../plan/plan.js';
import { allQueries, childrenOf, exprsOf, leavesOf } from '../../plan/walk.js';
import { type CountedScan, countedScans } from '../scan-access.js';
import { verifyCounted } from './barrier.js';

/**
 * Verifies every block that scans rows that may only be aggregated: it must be grouped, have an OFFSET as an
 * optimization fence, drop groups that are too small, and test for each aggregate how many of these rows it covers.
 *
 * @throws InternalError if a check fails, which is a bug of the compiler
 */
export function verifyMinima(root: Query, slots: readonly Slot[]): void {
  const blocks = allQueries(root);
  if (blocks.every((block) => scansOf(block).length === 0)) return;
  for (const block of blocks) {
    const scans = scansOf(block);
    if (block.kind !== 'select' || scans.length === 0) {
      for (const e of exprsOf(block)) refuseKeys(e);
      continue;
    }
    const [first] = block.having;
    const grouped = block.grouped && block.offset !== null;
    const kept = isWhole(block) || (first !== undefined && isPresent(first, scans, slots));
    if (!grouped || !kept || leavesOf(block.from).some((l) => l.kind !== 'governed')) {
      throw new InternalError('a block shows rows that may only be aggregated');
    }
    verifyBlock(block, scans, slots);
    verifyChosen(block);
    verifyCounted(block, slots);
  }
}

function scansOf(block: Query): readonly CountedScan[] {
  return block.kind === 'select' ? countedScans(block) : [];
}

/** True if all rows form one group, which exists even without rows. */
function isWhole(block: Select): boolean {
  return block.groupBy.length === 0 && block.groupingSets === null;
}

/** Verifies that a block alone chooses the rows that count; an outer query may only provide keys to compare with. */
function verifyChosen(block: Select): void {
  const within = new Set<number>();
  for (const q of allQueries(block))
    if (q.kind === 'select') for (const l of leavesOf(q.from)) within.add(l.id);
  const outside = (e: Expr): boolean =>
    (e.kind === 'column' && !within.has(e.source)) || childrenOf(e).some(outside);
  const comparesColumns = (e: Expr): boolean =>
    e.kind === 'operation' &&
    e.definition.name === '=' &&
    e.left?.kind === 'column' &&
    e.right.kind === 'column' &&
    block.where.includes(e);
  for (const q of allQueries(block))
    for (const e of exprsOf(q))
      if (!comparesColumns(e) && outside(e))
        throw new InternalError('rows that may only be aggregated are chosen by a query around');
}

function verifyBlock(block: Select, scans: readonly CountedScan[], slots: readonly Slot[]): void {
  const rest = isWhole(block) ? block.having : block.having.slice(1);
  const sorted = block.orderBy.flatMap((k) => (typeof k.by === 'number' ? [] : [k.by]));
  for (const e of [...block.outputs.map((o) => o.expr), ...rest, ...sorted]) verifyValue(e, scans, slots);
  for (const e of [...block.where, ...block.groupBy, ...block.distinctOn]) refuseKeys(e);
}

function verifyValue(expr: Expr, scans: readonly CountedScan[], slots: readonly Slot[]): void {
  const [arm] = expr.kind === 'case' ? expr.arms : [];
  if (
    expr.kind === 'case' &&
    arm?.result.kind === 'aggregate' &&
    isEnough(arm.when, scans, takenBy(arm.result), slots) &&
    isShared(arm.when, arm.result, scans)
  ) {
    const { otherwise } = expr;
    const isNothing = otherwise.kind === 'null';
    if (!isNothing && !(otherwise.kind === 'aggregate' && leavesOut(otherwise.filter, scans)))
      throw new InternalError('an aggregate falls back to rows that may only be aggregated');
    return;
  }
  if (expr.kind === 'aggregate' || isKey(expr))
    throw new InternalError('an aggregate does not ask how many rows it rests on');
  for (const child of childrenOf(expr)) verifyValue(child, scans, slots);
}

/** True if a condition requires enough keys of every scan, or a row that other grants show. */
function isPresent(condition: Expr, scans: readonly CountedScan[], slots: readonly Slot[]): boolean {
  if (condition.kind !== 'or') return isEnough(condition, scans, [], slots);
  const [enough, some, ...more] = condition.args;
  const shown =
    some?.kind === 'operation' && some.left?.kind === 'aggregate' && leavesOut(some.left.filter, scans);
  return enough !== undefined && shown && more.length === 0 && isEnough(enough, scans, [], slots);
}

/** True if a condition requires enough keys of every scan among the rows that match `taken`. */
function isEnough(
  condition: Expr,
  scans: readonly CountedScan[],
  taken: readonly string[],
  slots: readonly Slot[],
): boolean {
  const each = conjunctsOf(condition);
  const counts = (source: number, name: string, least: number): boolean =>
    each.some(
      (e) =>
        e.kind === 'operation' &&
        e.definition.name === '>=' &&
        e.right.kind === 'parameter' &&
        isAtLeast(slots[e.right.slot], least) &&
        e.left?.kind === 'aggregate' &&
        e.left.distinct &&
        e.left.args.some((a) => a.kind === 'column' && a.name === name && a.source === source) &&
        isNoWider(e.left, taken),
    );
  return scans.every(
    (s) =>
      counts(s.id, GROUP_KEY, s.minimum.size) &&
      s.minimum.distinct.every((least, i) => counts(s.id, groupValue(i), least)),
  );
}

/** True if a slot holds a number of at least `least` that the caller has not written. */
function isAtLeast(slot: Slot | undefined, least: number): boolean {
  return slot?.kind === 'literal' && !slot.written && Number(slot.value) >= least;
}

/** True if a condition requires that no row of any scan exceeds its maximum share of the aggregated value. */
function isShared(condition: Expr, call: Aggregate, scans: readonly CountedScan[]): boolean {
  if (call.definition.name === 'count') return true;
  const limits = conjunctsOf(condition).filter((e) => e.kind === 'operation' && e.definition.name === '<=');
  return scans
    .filter((s) => s.minimum.dominance !== null)
    .every((s) => {
      const wanted = new Set([...takenBy(call), keyOf(s)].filter((t) => t !== null));
      const about = (name: string): boolean =>
        limits.some((e) => {
          const [part, ...sums] = e.kind === 'operation' ? [e.left, e.right] : [];
          return (
            part != null &&
            aggregatesIn(part).some((a) => a.definition.name === name && takes(a, call, wanted)) &&
            sums.some((r) => aggregatesIn(r).filter((a) => takes(a, call, wanted)).length === 2)
          );
        });
      return about('max') && about('min');
    });
}

function keyOf(scan: CountedScan): string | null {
  const column = scan.columns.find((c) => c.name === GROUP_KEY);
  if (column === undefined) return null;
  const arg: Expr = { kind: 'column', source: scan.id, name: GROUP_KEY, type: column.type };
  return fingerprint({ kind: 'null_test', arg, negated: true, type: 'bool' });
}

/** True if `part` has the argument of `call`, over rows that match `wanted` and have values of one sign. */
function takes(part: Aggregate, call: Aggregate, wanted: ReadonlySet<string>): boolean {
  const filter = part.filter === null ? [] : conjunctsOf(part.filter);
  const rest = filter.filter((e) => !wanted.has(fingerprint(e)));
  const have = new Set(filter.map(fingerprint));
  return (
    part.distinct === call.distinct &&
    part.args.map(fingerprint).join() === call.args.map(fingerprint).join() &&
    [...wanted].every((w) => have.has(w)) &&
    rest.length === 1 &&
    rest.every((e) => e.kind === 'operation' && /^[<>]$/.test(e.definition.name))
  );
}

function aggregatesIn(e: Expr): readonly Aggregate[] {
  return e.kind === 'aggregate' ? [e] : childrenOf(e).flatMap(aggregatesIn);
}

/** Returns the conditions on rows that an aggregate includes: its filter, and arguments that are not NULL. */
function takenBy(call: Aggregate): readonly string[] {
  const given = call.args
    .filter((a) => a.kind !== 'parameter')
    .map((arg): Expr => ({ kind: 'null_test', arg, negated: true, type: 'bool' }));
  const filter = call.filter === null ? [] : conjunctsOf(call.filter);
  return [...filter, ...given].map(fingerprint);
}

function isNoWider(count: Aggregate, taken: readonly string[]): boolean {
  const filter = new Set(count.filter === null ? [] : conjunctsOf(count.filter).map(fingerprint));
  return taken.every((t) => filter.has(t));
}

/** True if a filter excludes every row that may only be aggregated, in all `scans`. */
function leavesOut(filter: Expr | null, scans: readonly CountedScan[]): boolean {
  const each = filter === null ? [] : conjunctsOf(filter);
  return scans.every((s) =>
    each.some((e) => e.kind === 'null_test' && !e.negated && isRowKey(e.arg) && e.arg.source === s.id),
  );
}

function conjunctsOf(expr: Expr): readonly Expr[] {
  return expr.kind === 'and' ? expr.args.flatMap(conjunctsOf) : [expr];
}

function isKey(expr: Expr): expr is Extract<Expr, { kind: 'column' }> {
  return expr.kind === 'column' && isGroupColumn(expr.name);
}

/** True for the row key, but not for the other counted values, which may be NULL for any row. */
function isRowKey(expr: Expr): expr is Extract<Expr, { kind: 'column' }> {
  return expr.kind === 'column' && expr.name === GROUP_KEY;
}

function refuseKeys(expr: Expr): void {
  if (isKey(expr)) throw new InternalError('the key that rows are counted by is read');
  childrenOf(expr).forEach(refuseKeys);
}
