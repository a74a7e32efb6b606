import type { Access } from '../access/access.js';
import type { Catalog, Joins, MetricFormat } from '../catalog/catalog.js';
import type { Features } from '../catalog/features.js';
import { type Position, queryError } from '../errors/errors.js';
import type { Expr, Form, Query, Slot, SourceId } from '../plan/plan.js';
import type { RuntimeRelation } from '../plan/runtime.js';
import { firstWord, type ParsedStatement, startOf } from '../text/parse.js';
import type { DeclaredType } from '../types/declared-types.js';
import type { TypeName } from '../types/types.js';
import { kindOf, TEMPORARY } from './ast.js';
import { BindContext, type World } from './context.js';
import { refuseCollationConflicts } from './expressions/cast.js';
import { requireSealedJoins } from './from/join.js';
import type { LiteralSlots } from './literals.js';
import { finishRelation, withUsedColumns } from './runtime/finish-runtime.js';
import { bindQuery } from './select/query.js';
import { requireExpandable } from './size-limits.js';
import { formOf } from './statement-form.js';

/** A query whose names and types are resolved but to which policy has not been applied yet. */
export interface BoundPlan {
  readonly form: Form;
  readonly query: Query;
  /** The join rule that was applied, or null if there was none. */
  readonly joins: Joins | null;
  readonly runtime: readonly RuntimeRelation[];
  readonly slots: readonly Slot[];
  /** Type OIDs of `$1 … $n`, declared by the client or inferred from use. */
  readonly clientOids: readonly number[];
  readonly metrics: readonly string[];
  readonly columns: readonly {
    readonly name: string;
    readonly type: TypeName;
    readonly format?: MetricFormat;
  }[];
  readonly positionOf: (expr: Expr) => Position | null;
  readonly positionOfSource: (source: SourceId) => Position | null;
  readonly literals: LiteralSlots;
}

/**
 * Resolves names, types and query forms against the objects this caller may see. Hidden objects are treated as
 * nonexistent.
 *
 * @throws QueryError E0511, E0512, E0513, E0514, E2101
 */
export function bind(
  parsed: ParsedStatement,
  catalog: Catalog,
  access: Access,
  features: Features,
  declared: readonly (DeclaredType | null)[],
  world: World = 'semantic',
  hasDecoder = true,
  joins: Joins = catalog.joins ?? 'declared',
): BoundPlan {
  if (!('SelectStmt' in parsed.node)) throw refuseStatement(parsed);
  const { source, lists } = parsed;
  const rule = world === 'physical' ? null : joins;
  const ctx = new BindContext(source, catalog, access, features, declared, world, lists, hasDecoder, rule);
  const { query, columns } = bindQuery(parsed.node.SelectStmt, ctx, null);
  const misplaced = ctx.wholeRows.misplaced(query);
  if (misplaced !== undefined) throw ctx.wholeRow(misplaced.at);
  for (const whole of [query, ...separateQueries(ctx)]) {
    requireExpandable(whole);
    requireSealedJoins(whole, ctx);
    refuseCollationConflicts(whole, ctx);
  }
  const complete = withUsedColumns(query, ctx);
  const runtime = Object.freeze(ctx.drafts.map((d) => finishRelation(d, query, ctx)));
  return Object.freeze({
    form: world === 'physical' ? 'sql' : formOf(query, ctx),
    query: complete,
    joins: ctx.joins,
    runtime,
    columns: Object.freeze(columns),
    positionOf: (expr: Expr) => ctx.positionOf(expr),
    positionOfSource: (source: SourceId) => ctx.positionOfSource(source),
    ...ctx.finish(),
  });
}

/** Returns the queries that run before the statement: input rows of operators and start keys of traversals. */
function separateQueries({ drafts }: BindContext): readonly Query[] {
  return drafts.flatMap((d) => {
    const query = d.kind === 'operated' ? d.rows : d.kind === 'traversal' ? d.start : null;
    return query === null ? [] : [query];
  });
}

/** Statements that are not queries but do not write either. */
const OTHER_STATEMENTS: ReadonlySet<string> = new Set([
  'ExplainStmt',
  'CallStmt',
  'DoStmt',
  'CopyStmt',
  'VariableShowStmt',
  'VariableSetStmt',
  'TransactionStmt',
  'PrepareStmt',
  'ExecuteStmt',
  'DeallocateStmt',
  'DeclareCursorStmt',
  'FetchStmt',
  'ClosePortalStmt',
  'DiscardStmt',
]);

function refuseStatement({ node, source }: ParsedStatement) {
  const kind = Object.keys(node)[0] ?? '';
  const word = firstWord(source);
  const command =
    word === 'WITH'
      ? kindOf(node)
          .replace(/ stmt$/, '')
          .toUpperCase()
      : word;
  if (makesTemporary(node)) return queryError('temporaryTable', {}, startOf(source));
  return OTHER_STATEMENTS.has(kind)
    ? queryError('unsupported', { construct: command, hint: 'ask with SELECT' }, startOf(source))
    : queryError('readOnly', { command }, startOf(source));
}

function makesTemporary(node: ParsedStatement['node']): boolean {
  const made =
    'CreateStmt' in node
      ? node.CreateStmt.relation
      : 'CreateTableAsStmt' in node
        ? node.CreateTableAsStmt.into?.rel
        : undefined;
  return made?.relpersistence === TEMPORARY;
}
