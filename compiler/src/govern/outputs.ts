import type { BoundPlan } from '../bind/index.js';
import { columnOf, fullName } from '../catalog/catalog.js';
import { assertNever, queryError } from '../errors/errors.js';
import type { ColumnRef, EntityScan, Expr, GovernedScan, Query } from '../plan/plan.js';
import { EVIDENCE, OPTIONAL_COLUMNS, REDACTED_FIELDS } from '../plan/runtime.js';
import { allLeaves, someExpr } from '../plan/walk.js';
import { identifier } from '../text/sql-text.js';
import { type ColumnForm, declaredColumn } from '../types/column-form.js';
import { isArray, type TypeName } from '../types/types.js';
import {
  type GovernedRuntime,
  type OutputColumn,
  type RedactableColumn,
  stepsOfWalk,
} from './governed-plan.js';
import { outputsAt, StatementLineage } from './lineage.js';
import { governedRows, withRowsInPlace } from './runtime.js';
import type { PassageFields } from './visible-columns.js';

/** Describes the outputs of a governed query for clients and the audit log. */
export function describeOutputs(
  plan: BoundPlan,
  query: Query,
  runtime: readonly GovernedRuntime[],
  passages: PassageFields,
) {
  const whole = withRowsInPlace(query, governedRows(runtime));
  const lineage = new StatementLineage(whole);
  const forms = new OutputForms(lineage);
  const scans = allLeaves(whole).filter((l) => l.kind === 'governed');
  const found = { lineage, forms, passages, runtime };
  const described = plan.columns.map((column, i) => describe(column, outputsAt(whole, i), found));
  const foreign = scans.find((s) => s.relation.connector !== scans[0]?.relation.connector);
  if (foreign !== undefined) {
    const hint = `\`${identifier(foreign.relation.name)}\` lies in another database: ask in two queries`;
    const construct = 'a query over more than one connector';
    throw queryError('unsupported', { construct, hint }, plan.positionOfSource(foreign.id));
  }
  return {
    outputs: Object.freeze(described.map((d) => d.output)),
    partialColumns: Object.freeze(described.filter((d) => d.partial).map((d) => d.output.name)),
    objects: sortedSet([
      ...scans.map((s) => fullName('entities', s.relation.name)),
      ...plan.metrics.map((m) => fullName('metrics', m)),
      ...inAll(runtime, objectsOf),
    ]),
    redactedColumns: sortedSet(inAll(described, (d) => d.masked)),
    maskedColumns: sortedSet(inAll(scans, redactedOf)),
    passageFields: passageFieldsIn(inAll(described, (d) => d.fields)),
    connector: scans[0]?.relation.connector ?? null,
  };
}

function sortedSet(names: readonly string[]): readonly string[] {
  return Object.freeze(names.length < 2 ? [...names] : [...new Set(names)].sort());
}

/** Returns the full names of the objects that the steps of a runtime relation read. */
function objectsOf(runtime: GovernedRuntime): readonly string[] {
  switch (runtime.kind) {
    case 'retrieval':
      return [fullName('facets', runtime.relation.facet.name)];
    case 'traversal':
      return stepsOfWalk(runtime).flatMap((h) => h.objects);
    case 'hydration':
      return runtime.stores.map((s) => fullName('facets', s.facet.name));
    case 'operated':
      return runtime.rows.objects;
    default:
      return assertNever(runtime);
  }
}

function redactedOf(scan: GovernedScan): readonly string[] {
  return scan.columns
    .filter((c) => c.masked !== 'none' && columnOf(scan.relation, c.name) !== null)
    .map((c) => `${scan.relation.name}.${c.name}`);
}

interface OutputSources {
  readonly lineage: StatementLineage;
  readonly forms: OutputForms;
  readonly passages: PassageFields;
  readonly runtime: readonly GovernedRuntime[];
}

function describe(
  column: BoundPlan['columns'][number],
  exprs: readonly Expr[],
  { lineage, forms, passages, runtime }: OutputSources,
) {
  const fields = inAll(exprs, (e) => lineage.runtimeColumnsUnder(e));
  const under = inAll(exprs, (e) => lineage.columnsUnder(e));
  const masked = inAll(under, ({ scan, name }) => maskedUnder(scan, name));
  const origins = originsOf(exprs, lineage);
  const output: OutputColumn = Object.freeze({
    name: column.name,
    type: column.type,
    form: forms.common(exprs),
    source: sourceOf(origins, lineage),
    redacted: masked.length > 0 || fields.some((f) => passages.of(f)?.mask === 'all'),
    redactable: redactableOf(fields, passages, runtime),
    passageKey: !passages.none && origins.length > 0 && origins.every((o) => passages.isKey(o)),
    format: column.format ?? null,
  });
  const partial = masked.some((c) => c.masked === 'some') && exprs.some((e) => isAggregated(e, lineage));
  return { output, masked: masked.map((c) => c.column).filter((c) => c !== null), fields, partial };
}

/**
 * Returns the columns of scans, passages and traversals that `exprs`, the definitions of one output, pass through
 * unchanged, also through derived tables; empty if a definition is computed.
 */
function originsOf(exprs: readonly Expr[], lineage: StatementLineage): readonly ColumnRef[] {
  const found: ColumnRef[] = [];
  const seen = new Set<string>();
  const open = [...exprs];
  for (let expr = open.pop(); expr !== undefined; expr = open.pop()) {
    if (expr.kind !== 'column') return [];
    const id = `${expr.source} ${expr.name}`;
    if (seen.has(id)) continue;
    seen.add(id);
    const definitions = lineage.scanOf(expr.source) === null ? lineage.armsOf(expr) : [];
    if (definitions.length === 0) found.push(expr);
    open.push(...definitions);
  }
  return found;
}

/** Returns the full name of the entity column that all origins refer to; null if they differ or there are none. */
function sourceOf(origins: readonly ColumnRef[], lineage: StatementLineage): string | null {
  const names = new Set(
    origins.map(({ source, name }) => {
      const relation = lineage.scanOf(source)?.relation;
      const isOwn = relation !== undefined && columnOf(relation, name) !== null;
      return isOwn ? `osl.entities.${relation.name}.${name}` : null;
    }),
  );
  const [only = null, ...more] = names;
  return more.length === 0 ? only : null;
}

/** Like `flatMap`, but several times faster. */
function inAll<T, U>(list: readonly T[], of: (item: T) => readonly U[]): readonly U[] {
  const found: U[] = [];
  for (const item of list) found.push(...of(item));
  return found;
}

/** Returns column `name` of `scan` if it is masked in any row; `column` is null if it is not declared. */
function maskedUnder(scan: EntityScan | GovernedScan, name: string) {
  const masked = scan.kind === 'governed' ? scan.columns.find((c) => c.name === name)?.masked : undefined;
  if (masked === undefined || masked === 'none') return [];
  return [
    { masked, column: columnOf(scan.relation, name) === null ? null : `${scan.relation.name}.${name}` },
  ];
}

const NONE: readonly RedactableColumn[] = Object.freeze([]);

function redactableOf(
  columns: readonly ColumnRef[],
  passages: PassageFields,
  runtime: readonly GovernedRuntime[],
): readonly RedactableColumn[] {
  if (columns.length === 0) return NONE;
  const found = new Map<string, RedactableColumn>();
  for (const ref of columns) {
    const at = runtime.findIndex(({ relation }) => relation.source === ref.source);
    const column = redactableColumn(ref, passages, runtime[at]);
    if (column !== null) found.set(`${at} ${column}`, Object.freeze({ runtime: at, column }));
  }
  return Object.freeze([...found.values()]);
}

/**
 * Returns the column that shows in each row whether `ref` is redacted: `text` for values derived from the text,
 * otherwise `ref` itself. Null if the redaction of `ref` does not depend on the row.
 */
function redactableColumn(
  ref: ColumnRef,
  passages: PassageFields,
  runtime: GovernedRuntime | undefined,
): string | null {
  if (runtime?.kind === 'hydration')
    return ref.name === EVIDENCE && runtime.stores.some((s) => s.redacts) ? EVIDENCE : null;
  if (runtime?.kind !== 'retrieval') return null;
  const mask = passages.of(ref)?.mask ?? null;
  if (mask !== null) return mask === 'some' || mask === 'searched' ? ref.name : null;
  const { operators } = runtime.relation;
  const isText = ref.name === 'text' || ref.name === OPTIONAL_COLUMNS.highlight;
  const isMadeOfText = operators.some((o) => o.column === ref.name && !MEASURES.has(o.type));
  return (isText || isMadeOfText) && runtime.store?.redacts === true ? 'text' : null;
}

/** Types of operator results that never contain part of a text. */
const MEASURES: ReadonlySet<TypeName> = new Set<TypeName>(['bool', 'int4', 'int8', 'float8']);

/** Returns the names of `columns`, all from passages; null (all fields) if they include the list of redacted ones. */
function passageFieldsIn(columns: readonly ColumnRef[]): ReadonlySet<string> | null {
  const names = new Set(columns.map((c) => c.name));
  return names.has(REDACTED_FIELDS) ? null : names;
}

/** True if the value contains an aggregate or window call, also through derived tables. */
function isAggregated(expr: Expr, lineage: StatementLineage, seen: Set<string> = new Set()): boolean {
  return someExpr(expr, (e) => {
    if (e.kind === 'aggregate' || e.kind === 'window') return true;
    if (e.kind === 'scalar_query')
      return lineage.outputsOf(e.query).some((d) => isAggregated(d, lineage, seen));
    if (e.kind !== 'column' || lineage.scanOf(e.source) !== null) return false;
    const id = `${e.source} ${e.name}`;
    if (seen.has(id)) return false; // already visited, and not an aggregate
    seen.add(id);
    return lineage.definitionsOf(e).some((d) => isAggregated(d, lineage, seen));
  });
}

/**
 * Type modifiers of outputs, by Postgres' rules: a length or precision comes from a column or a cast, and is kept if
 * all alternatives of a value agree.
 */
class OutputForms {
  readonly #lineage: StatementLineage;
  /** Forms by FROM item and column name; null while a form is being computed, as in a recursive table. */
  readonly #columns = new Map<string, ColumnForm | null>();
  readonly #known = new Map<Expr, ColumnForm | null>();

  constructor(lineage: StatementLineage) {
    this.#lineage = lineage;
  }

  /** Returns the common form of `exprs`; null if they differ, or have no form. */
  common(exprs: readonly Expr[]): ColumnForm | null {
    const [first, ...more] = exprs;
    const form = first === undefined ? null : this.#of(first);
    if (form === null) return null;
    const isSame = (other: ColumnForm | null): boolean =>
      other !== null && other.oid === form.oid && other.modifier === form.modifier;
    return more.every((e) => isSame(this.#of(e))) ? form : null;
  }

  #of(expr: Expr): ColumnForm | null {
    if (expr.kind === 'column') return this.#ofColumn(expr);
    let form = this.#known.get(expr);
    if (form === undefined) this.#known.set(expr, (form = this.#ofParts(expr)));
    return form;
  }

  #ofParts(expr: Expr): ColumnForm | null {
    switch (expr.kind) {
      case 'cast':
        return expr.modifiers.length === 0 ? null : formNamed(`${expr.type}(${expr.modifiers.join(',')})`);
      case 'case':
        return this.common([expr.otherwise, ...expr.arms.map((a) => a.result)]);
      case 'conditional':
        return this.common(expr.form === 'nullif' ? expr.args.slice(0, 1) : expr.args);
      case 'collate':
        return this.#of(expr.arg);
      case 'scalar_query':
        return this.common(this.#lineage.outputsOf(expr.query));
      case 'subscript':
        return elementForm(this.#of(expr.arg));
      case 'array':
        return isArray(expr.type) ? arrayForm(this.common(expr.items)) : null;
      default:
        return null;
    }
  }

  /** Returns the form of a column; null if the column may show a mask. */
  #ofColumn(ref: ColumnRef): ColumnForm | null {
    const scan = this.#lineage.scanOf(ref.source);
    if (scan !== null) {
      const shown = scan.kind === 'governed' ? scan.columns.find((c) => c.name === ref.name) : undefined;
      return shown?.masked === 'none' ? (columnOf(scan.relation, ref.name)?.form ?? null) : null;
    }
    const id = `${ref.source} ${ref.name}`;
    const known = this.#columns.get(id);
    if (known !== undefined) return known;
    this.#columns.set(id, null);
    const form = this.common(this.#lineage.definitionsOf(ref));
    this.#columns.set(id, form);
    return form;
  }
}

function formNamed(sql: string): ColumnForm | null {
  return declaredColumn(sql)?.form ?? null;
}

function elementForm(array: ColumnForm | null): ColumnForm | null {
  return array?.sql.endsWith('[]') === true ? formNamed(array.sql.slice(0, -2)) : null;
}

function arrayForm(element: ColumnForm | null): ColumnForm | null {
  return element === null || element.sql.endsWith('[]') ? null : formNamed(`${element.sql}[]`);
}
