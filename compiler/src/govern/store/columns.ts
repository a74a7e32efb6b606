import type { Column, FacetStore, FacetVersion, Relation } from '../../catalog/catalog.js';
import type { OperatorDefinition } from '../../functions/define.js';
import { caseNode, castTo, nullOf } from '../../plan/nodes.js';
import type { Expr, FunctionCall, GovernedColumn, PlanOutput, Query } from '../../plan/plan.js';
import { selectOf } from '../../plan/select-nodes.js';
import { allQueries, exprsOf, exprsOfScan, leavesOf, someExpr } from '../../plan/walk.js';
import type { TypeName } from '../../types/types.js';

/** The columns that every store has for its passages, besides metadata. */
export const STORED = [
  ['chunk_id', 'text'],
  ['doc_id', 'text'],
  ['source', 'text'],
  ['start_char', 'int4'],
  ['end_char', 'int4'],
  ['text', 'text'],
  ['sha256', 'text'],
  ['redacted_fields', 'text[]'],
] as const satisfies readonly (readonly [string, TypeName])[];

/** The columns of derived attributes: one row for each passage that supports the value of a document. */
export const DERIVED = [
  ['attribute', 'text'],
  ['doc_id', 'text'],
  ['value', 'jsonb'],
  ['score', 'float8'],
  ['support', 'int4'],
  ['chunk_id', 'text'],
] as const satisfies readonly (readonly [string, TypeName])[];

/** The column with the words of a passage, as word numbers of the lexical lane (word search). */
export const TERMS: GovernedColumn = Object.freeze({
  name: '#terms',
  type: 'int4[]',
  expr: Object.freeze({ kind: 'base', column: 'terms', type: 'int4[]' }),
  masked: 'none',
});

/**
 * Tests if two arrays of words overlap. On arrays that the gateway creates, this and WORDS_CONTAIN can neither fail nor
 * leak, regardless of what `pg_proc` states for arrays in general.
 */
export const WORDS_OVERLAP: OperatorDefinition = Object.freeze({
  name: '&&',
  left: 'int4[]',
  right: 'int4[]',
  result: 'bool',
  leakproof: true,
});
/** Tests if the left array of words contains the right one. */
export const WORDS_CONTAIN: OperatorDefinition = Object.freeze({ ...WORDS_OVERLAP, name: '@>' });

/** The column of BM25 weights. */
export const LEXICAL_VECTOR = 'lex';
/** The columns of the vectors that encoder operators compare: one for the lexical lane, one for a model. */
export const NGRAM_VECTOR = 'dense';
export const MODEL_VECTOR = 'embedding';

/** Names of the outputs that store plans can have for every facet, unlike metadata, which differs between facets. */
export type StoredName =
  | (typeof STORED)[number][0]
  | (typeof DERIVED)[number][0]
  | 'distance'
  | 'vector'
  | 'weights'
  | 'candidates'
  | 'farthest'
  | 'snapshot';

/** Returns the output name of a store's own column `name`, distinct from metadata of the same name. */
export function stored(name: StoredName): string {
  return `#${name}`;
}

/** True if an output belongs to the store itself and is not metadata. */
export function isStored(output: string): boolean {
  return output.startsWith('#');
}

/** Returns the store's own column `name`; null for metadata. */
export function ownColumn(name: string): Expr | null {
  const own = STORED.find(([n]) => stored(n) === name);
  return own === undefined ? null : { kind: 'base', column: own[0], type: own[1] };
}

/** Returns the table of a version's passages: the facet's declared columns, and those that every store has. */
export function passageTable(relation: Relation, facet: FacetStore, version: FacetVersion): Relation {
  const own = STORED.map(([name, type]) => storedColumn(stored(name), name, type));
  const terms = storedColumn('#terms', 'terms', 'int4[]');
  return Object.freeze({
    ...relation,
    schema: facet.schema,
    table: version.table,
    columns: Object.freeze([...relation.columns, ...own, terms]),
  });
}

/** Returns the narrow companion of the passage table, with the id, key, metadata and vector signs of each passage. */
export function bitsTable(passages: Relation, version: FacetVersion): Relation {
  return Object.freeze({ ...passages, table: version.bits });
}

/** Returns the table that counts the passages of a version containing each word. */
export function wordsTable(passages: Relation, version: FacetVersion): Relation {
  const columns = [storedColumn('term', 'term', 'int4'), storedColumn('passages', 'passages', 'int8')];
  return Object.freeze({ ...passages, table: version.words, columns });
}

/** Returns the table of attributes derived from a version's passages, and its columns without the entity key. */
export function derivedTable(
  passages: Relation,
  version: FacetVersion,
): { readonly table: Relation; readonly own: readonly Column[] } {
  const own = DERIVED.map(([name, type]) => storedColumn(stored(name), name, type));
  const key = passages.columns.filter((c) => c.physical === 'entity_key');
  return { table: { ...passages, table: version.derivedTable, columns: [...own, ...key] }, own };
}

function storedColumn(name: string, physical: string, type: TypeName): Column {
  return Object.freeze({
    name,
    physical,
    type,
    description: null,
    nullable: true,
    sensitivity: null,
    keyDomain: null,
  });
}

/**
 * Snapshot of a statement, as a `pg_snapshot`: statements with equal snapshots read the same rows of every table. NULL
 * on a standby, whose snapshots do not list the transactions still in progress.
 */
export const SNAPSHOT: PlanOutput = Object.freeze({
  name: stored('snapshot'),
  expr: Object.freeze({
    kind: 'scalar_query',
    // A separate query runs only once, whereas outputs are computed even for rows that LIMIT drops.
    query: selectOf({
      outputs: [
        {
          name: 'snapshot',
          expr: caseNode(
            ofServer('pg_is_in_recovery', 'bool'),
            nullOf('text'),
            castTo(ofServer('pg_current_snapshot', 'text'), 'text'),
          ),
        },
      ],
    }),
    type: 'text',
  }),
});

/** Creates a call of a function that describes the server, which callers may not call. */
function ofServer(name: string, type: FunctionCall['type']): FunctionCall {
  const args = Object.freeze([]);
  return Object.freeze({
    kind: 'call',
    definition: Object.freeze({
      name,
      kind: 'scalar',
      arguments: args,
      variadic: null,
      result: type,
      volatility: 'stable',
      leakproof: true,
      structural: new Map(),
    }),
    args,
    type,
  });
}

/**
 * True if `query`, which must not contain `SNAPSHOT`, has the same result for the same rows at any time. A stable
 * function may read the clock, and a text parsed as a time may be `now` or `today`.
 */
export function isTimeless(query: Query): boolean {
  return !allQueries(query).some((q) => {
    const scans = q.kind === 'select' ? leavesOf(q.from) : [];
    const read = scans.flatMap((s) => (s.kind === 'governed' ? exprsOfScan(s) : []));
    return [...exprsOf(q), ...read].some((e) => someExpr(e, mayReadClock));
  });
}

function mayReadClock(e: Expr): boolean {
  switch (e.kind) {
    case 'call':
    case 'aggregate':
      return e.definition.volatility !== 'immutable' || isTime(e);
    case 'cast':
    case 'parameter':
      return isTime(e);
    default:
      return false;
  }
}

function isTime({ type }: Expr): boolean {
  return /^(date|time)/.test(type);
}
