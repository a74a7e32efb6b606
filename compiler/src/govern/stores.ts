import { type Access, accessTo, type RelationAccess, rowAccess } from '../access.js';
import type { LiteralSlots } from '../bind/index.js';
import { columnsFor } from '../bind/scope.js';
import type { Catalog, Column, FacetStore, FacetVersion, Relation } from '../catalog.js';
import { InternalError } from '../errors.js';
import type { OperatorDefinition } from '../functions/definition.js';
import { resolveFunction, resolveOperator } from '../functions/index.js';
import type {
  BaseColumn,
  ColumnRef,
  Distance,
  Expr,
  GovernedColumn,
  GovernedScan,
  Operation,
  Output,
  Select,
  SortKey,
  SourceId,
} from '../plan.js';
import type { TypeName } from '../types.js';
import { visitExpr } from '../walk.js';
import { servedAccess, versionDue } from './facet-version.js';
import { type GovernedPlan, type GovernedStore, mint, type OutputColumn } from './governed-plan.js';
import { type Grounds, isHarmless } from './harmless.js';
import { baseOf, columnRule, maskedColumn, rowFilter, sameRows, visibleColumn } from './mask.js';
import { EMPTY, type Passages, passagesOf } from './passages.js';
import { governScan } from './scan.js';
import { GovernedSlots } from './slots.js';
import { verify } from './verify.js';

/** What is wanted of a facet's store. */
export interface StoreRequest {
  readonly source: SourceId;
  readonly facet: FacetStore;
  /** Predicates over the facet's own columns. */
  readonly filters: readonly Expr[];
  /** Metadata columns that are used. */
  readonly metadata: readonly string[];
  /**
   * `search`: the best for a vector; `named`: those of the entities in `keys`, with the attributes `derived`;
   * `first`: any, by their keys.
   */
  readonly by:
    | { readonly kind: 'search'; readonly vectors: boolean }
    | { readonly kind: 'named'; readonly keys: Expr; readonly derived: readonly string[] }
    | { readonly kind: 'first' };
}

/** Columns of a passage in its store; metadata comes beside them. */
const STORED = [
  ['chunk_id', 'text'],
  ['doc_id', 'text'],
  ['source', 'text'],
  ['start_char', 'int4'],
  ['end_char', 'int4'],
  ['text', 'text'],
  ['sha256', 'text'],
  ['redacted_fields', 'text[]'],
] as const satisfies readonly (readonly [string, TypeName])[];

/** Columns of a derived attribute: one row for each passage that the value of one document rests on. */
const DERIVED = [
  ['attribute', 'text'],
  ['doc_id', 'text'],
  ['value', 'jsonb'],
  ['score', 'float8'],
  ['support', 'int4'],
  ['chunk_id', 'text'],
] as const satisfies readonly (readonly [string, TypeName])[];

/** The words of a passage, as the lexical lane numbers them. */
const TERMS: GovernedColumn = Object.freeze({
  name: '#terms',
  type: 'int4[]',
  expr: Object.freeze({ kind: 'base', column: 'terms', type: 'int4[]' }),
  masked: 'none',
});

/** What a store's plan yields of each passage, whatever its facet declares. */
export type StoredName = (typeof STORED)[number][0] | (typeof DERIVED)[number][0] | 'distance' | 'vector';

/** The output of a store's plan that holds `name`: apart from metadata, which may have the same name. */
export function stored(name: StoredName): string {
  return `#${name}`;
}

/** Whether an output is the store's own, no metadata. */
export function isStored(output: string): boolean {
  return output.startsWith('#');
}

/** The column of BM25 weights, and that of the vectors which encoder operators compare. */
const LEXICAL_VECTOR = 'lex';
const NGRAM_VECTOR = 'dense';
const MODEL_VECTOR = 'embedding';

/**
 * The governed plans that read one facet: the version that this caller is due, its row filter, and only passages
 * whose entity the caller may see. Null where there is no grant, or no version fits exactly.
 */
export function governedStore(
  request: StoreRequest,
  catalog: Catalog,
  access: Access,
  planSlots: GovernedSlots,
  literals: LiteralSlots,
): GovernedStore | null {
  const { facet } = request;
  const relation = catalog.relations.get(facet.name);
  const entity = catalog.relations.get(facet.entity);
  const allowed = rowAccess(facet.name, access);
  const version = versionDue(facet, catalog, access);
  if (relation === undefined || entity === undefined || allowed === undefined || version === null)
    return null;
  const shown = shownFields(relation, allowed);
  const served = servedAccess(allowed, version);
  const builder = new StorePlans(
    request,
    storeOf(relation, facet, version),
    served,
    shown,
    entity,
    access,
    catalog,
    planSlots,
    literals,
  );
  const search = request.by.kind === 'search';
  const lexical = search && facet.lane === 'lexical';
  return Object.freeze({
    facet,
    version: version.name,
    fields: Object.freeze({
      shown,
      masked: new Set(shown.filter((name) => columnRule(relation, name, served).masked === 'all')),
    }),
    mayDecode: sameRows(
      allowed.grants.filter((g) => g.decode === true),
      allowed.grants,
    ),
    passages: builder.passages(),
    nearest: search && !lexical ? builder.nearest(version) : null,
    derived: builder.derived(version),
    counts: lexical
      ? Object.freeze({
          all: builder.count(null),
          ofTerms: builder.countOfTerms(),
        })
      : null,
  });
}

/** The facet's columns that this caller may know of and use, in declared order. */
function shownFields(relation: Relation, allowed: RelationAccess): readonly string[] {
  return Object.freeze(
    [...columnsFor(relation, allowed).values()].filter((c) => !c.denied).map((c) => c.name),
  );
}

function storeOf(relation: Relation, facet: FacetStore, version: FacetVersion): Relation {
  const own = STORED.map(([name, type]) => storedColumn(stored(name), name, type));
  const terms = storedColumn('#terms', 'terms', 'int4[]');
  return Object.freeze({
    ...relation,
    schema: facet.schema,
    table: version.table,
    columns: Object.freeze([...relation.columns, ...own, terms]),
  });
}

/** The narrow table beside the store: every passage's id, key, metadata and signs. */
function bitsOf(store: Relation, version: FacetVersion): Relation {
  return Object.freeze({ ...store, table: version.bits });
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

class StorePlans {
  readonly #request: StoreRequest;
  readonly #store: Relation;
  readonly #allowed: RelationAccess;
  readonly #shown: readonly string[];
  readonly #entity: Relation;
  readonly #access: Access;
  readonly #catalog: Catalog;
  readonly #slots: GovernedSlots;
  readonly #literals: LiteralSlots;

  constructor(
    request: StoreRequest,
    store: Relation,
    allowed: RelationAccess,
    shown: readonly string[],
    entity: Relation,
    access: Access,
    catalog: Catalog,
    slots: GovernedSlots,
    literals: LiteralSlots,
  ) {
    this.#request = request;
    this.#store = store;
    this.#allowed = allowed;
    this.#shown = shown;
    this.#entity = entity;
    this.#access = access;
    this.#catalog = catalog;
    this.#slots = new GovernedSlots(slots.finish());
    this.#literals = literals;
  }

  /** @param among whether only the chunks of slot `chunks` come into question */
  passages(among = false): GovernedPlan {
    const { by, facet, metadata } = this.#request;
    const computed = [...(by.kind === 'search' ? this.#computed(by.vectors) : []), ...this.#flags()];
    const wanted = by.kind === 'search' ? this.#overlap() : by.kind === 'named' ? [this.#named(by.keys)] : [];
    const id: BaseColumn = { kind: 'base', column: 'chunk_id', type: 'text' };
    const pushed = among ? [...wanted, oneOf(id, this.#slots.given('chunks', 'text[]'))] : wanted;
    const shown = [
      ...STORED.map(([name]) => stored(name)),
      facet.entityKey,
      ...metadata.filter((m) => m !== facet.entityKey),
    ];
    const read = this.#passages(this.#scan(shown, computed, pushed));
    const outputs = [...shown, ...computed.map((c) => c.name)].map(
      (name): Output => ({ name, expr: read.ref(name) }),
    );
    const first = by.kind === 'search' ? stored('distance') : facet.entityKey;
    const orderBy = [first, stored('chunk_id')].map(
      (name): SortKey => ({ by: read.ref(name), descending: false, nullsFirst: false }),
    );
    const limit = this.#slots.given('limit', 'int8');
    return this.#plan({ ...EMPTY, from: read.from, where: read.where, outputs, orderBy, limit });
  }

  /** The steps of the lanes for many passages. */
  nearest(version: FacetVersion): NonNullable<GovernedStore['nearest']> {
    const bits = bitsOf(this.#store, version);
    const signs = this.#distance('<~>', 'bit', 'bits');
    const product = this.#distance('<#>', 'vector', MODEL_VECTOR);
    // Behind a fence no index gives an order.
    const isFenced = this.#filters(this.#scan([], [], [])).others.length > 0;
    const indexed = this.#request.facet.approximate && !isFenced;
    return Object.freeze({
      some: this.#some(bits),
      bySigns: this.#candidates(bits, signs, true),
      byIndex: indexed ? this.#candidates(this.#store, product, false) : null,
      among: this.passages(true),
    });
  }

  /** @param byIdThen whether chunk ids decide between equal distances: an index gives no such order */
  #candidates(table: Relation, distance: GovernedColumn, byIdThen: boolean): GovernedPlan {
    const id = stored('chunk_id');
    const read = this.#passages(this.#scan([id, this.#request.facet.entityKey], [distance], [], table));
    const names = [id, distance.name];
    return this.#plan({
      ...EMPTY,
      from: read.from,
      where: read.where,
      outputs: names.map((name): Output => ({ name, expr: read.ref(name) })),
      orderBy: (byIdThen ? [distance.name, id] : [distance.name]).map(
        (name): SortKey => ({ by: read.ref(name), descending: false, nullsFirst: false }),
      ),
      limit: this.#slots.given('limit', 'int8'),
    });
  }

  /** How many passages pass the filters, counted up to slot `limit`. */
  #some(table: Relation): GovernedPlan {
    const { facet, source } = this.#request;
    const read = this.#passages(this.#scan([facet.entityKey], [], [], table));
    const some: Select = {
      ...EMPTY,
      from: read.from,
      where: read.where,
      outputs: [{ name: facet.entityKey, expr: read.ref(facet.entityKey) }],
      limit: this.#slots.given('limit', 'int8'),
    };
    const from = { kind: 'derived', id: source + SOME_SOURCES, query: some } as const;
    return this.#plan({ ...EMPTY, grouped: true, from, outputs: [{ name: 'count', expr: countOfRows() }] });
  }

  /** Derived attributes, joined to those of the passages they rest on that the caller may see. */
  derived(version: FacetVersion): GovernedPlan | null {
    const { by, facet, source } = this.#request;
    if (by.kind !== 'named' || by.derived.length === 0) return null;
    const passages = this.#passages(
      this.#scan([facet.entityKey, stored('chunk_id')], [], [this.#named(by.keys)]),
    );
    const wanted = this.#slots.literal(by.derived, 'text[]');
    const derived = derivedScan(source + DERIVED_SOURCES, this.#store, version, [
      oneOf({ kind: 'base', column: 'attribute', type: 'text' }, wanted),
      this.#named(by.keys),
    ]);
    const on: Operation = {
      kind: 'operation',
      definition: equality('text'),
      left: this.#ref(derived, stored('chunk_id')),
      right: passages.ref(stored('chunk_id')),
      type: 'bool',
    };
    const outputs = [
      { name: facet.entityKey, expr: passages.ref(facet.entityKey) },
      ...DERIVED.map(([name]) => ({ name: stored(name), expr: this.#ref(derived, stored(name)) })),
    ];
    return this.#plan({
      ...EMPTY,
      from: { kind: 'join', sealed: true, type: 'inner', left: derived, right: passages.from, on: [on] },
      where: passages.where,
      outputs,
      orderBy: outputs.map(({ expr }) => ({ by: expr, descending: false, nullsFirst: false })),
      limit: this.#slots.given('limit', 'int8'),
    });
  }

  /** How many passages pass the filters; with a slot `term`, how many of them hold it. */
  count(term: 'term' | null): GovernedPlan {
    const pushed = term === null ? [] : [this.#holds()];
    const read = this.#passages(this.#scan([this.#request.facet.entityKey], [], pushed));
    return this.#plan({
      ...EMPTY,
      grouped: true,
      from: read.from,
      where: read.where,
      outputs: [{ name: 'count', expr: countOfRows() }],
    });
  }

  /** The same for many words: a look-up for each of the rows that slot `words` brings, where it may use an index. */
  countOfTerms(): NonNullable<GovernedStore['counts']>['ofTerms'] {
    const { facet, source } = this.#request;
    const scan = this.#scan([facet.entityKey], [TERMS], []);
    const read = this.#passages(scan);
    if (read.from !== scan) return Object.freeze({ asked: 'one by one', plan: this.count('term') });
    const id = source + WORD_SOURCES;
    const word: ColumnRef = { kind: 'column', source: id, name: 'term', type: 'int4[]' };
    const counted: Select = {
      ...EMPTY,
      grouped: true,
      from: scan,
      where: [
        ...read.where,
        {
          kind: 'operation',
          definition: HOLDS,
          left: read.ref(TERMS.name),
          right: word,
          type: 'bool',
        },
      ],
      outputs: [{ name: 'count', expr: countOfRows() }],
    };
    const { slot } = this.#slots.given('words', 'jsonb');
    const plan = this.#plan({
      ...EMPTY,
      from: { kind: 'runtime', id, slot, columns: [{ name: 'term', type: 'int4[]' }] },
      outputs: [
        { name: 'term', expr: word },
        { name: 'count', expr: { kind: 'scalar_query', query: counted, type: 'int8' } },
      ],
    });
    return Object.freeze({ asked: 'at once', plan });
  }

  #scan(
    names: readonly string[],
    computed: readonly GovernedColumn[],
    pushed: readonly Expr[],
    table: Relation = this.#store,
  ): GovernedScan {
    const needed = new Set([...names, ...this.#request.filters.flatMap(columnNames)]);
    const columns = [...needed].map((name) => this.#column(name));
    return Object.freeze({
      kind: 'governed',
      id: this.#request.source,
      relation: table,
      columns: Object.freeze([...columns, ...computed]),
      filter: rowFilter(this.#allowed, this.#slots),
      pushed: Object.freeze(pushed),
      fenced: false,
      minimum: null,
    });
  }

  #column(name: string): GovernedColumn {
    const own = STORED.find(([n]) => stored(n) === name);
    if (own === undefined && this.#shown.includes(name)) {
      return maskedColumn(columnRule(this.#store, name, this.#allowed), this.#slots);
    }
    const type = own?.[1] ?? this.#store.columns.find((c) => c.name === name)?.type ?? 'text';
    const expr: Expr = own === undefined ? { kind: 'null', type } : { kind: 'base', column: own[0], type };
    return Object.freeze({ name, type, expr, masked: own === undefined ? 'all' : 'none' });
  }

  /** Of each field that policy masks in some rows only, whether it may be read in this one. */
  #flags(): readonly GovernedColumn[] {
    return this.#shown
      .map((name) => columnRule(this.#store, name, this.#allowed))
      .filter((rule) => rule.masked === 'some')
      .map((rule) => visibleColumn(rule, this.#slots));
  }

  #computed(vectors: boolean): readonly GovernedColumn[] {
    const lexical = this.#request.facet.lane === 'lexical';
    // INVARIANT: an index for `<#>` cannot serve `<=>`, so what is ordered by `<=>` is exact, whatever indexes there are.
    const distance = lexical
      ? this.#distance('<#>', 'sparsevec', LEXICAL_VECTOR)
      : this.#distance('<=>', 'vector', MODEL_VECTOR);
    const vector: GovernedColumn = {
      name: stored('vector'),
      type: 'float4[]',
      masked: 'none',
      expr: { kind: 'stored_vector', column: lexical ? NGRAM_VECTOR : MODEL_VECTOR, type: 'float4[]' },
    };
    return vectors ? [distance, vector] : [distance];
  }

  #distance(operator: Distance['operator'], vector: Distance['vector'], column: string): GovernedColumn {
    const to = this.#slots.given('vector', 'text');
    const expr: Distance = { kind: 'distance', operator, vector, column, to, type: 'float8' };
    return { name: stored('distance'), type: 'float8', masked: 'none', expr };
  }

  /** In the lexical lane a passage without a word of the query has no score and does not fill the answer. */
  #overlap(): readonly Expr[] {
    if (this.#request.facet.lane !== 'lexical') return [];
    return [
      {
        kind: 'operation',
        definition: SHARES,
        left: TERMS.expr,
        right: this.#slots.given('terms', 'int4[]'),
        type: 'bool',
      },
    ];
  }

  #holds(): Expr {
    return {
      kind: 'operation',
      definition: HOLDS,
      left: TERMS.expr,
      right: this.#slots.given('term', 'int4[]'),
      type: 'bool',
    };
  }

  #named(keys: Expr): Expr {
    const key = this.#key();
    return oneOf({ kind: 'base', column: key.physical, type: key.type }, keys);
  }

  /** The column of the store that names the entity. */
  #key(): Column {
    const key = this.#store.columns.find((c) => c.name === this.#request.facet.entityKey);
    if (key === undefined) throw new InternalError('a facet without its key');
    return key;
  }

  /** What is left of a scan: passages whose entity is visible, and that meet the caller's own filters. */
  #passages(scan: GovernedScan): Passages {
    const id = scan.id + FENCED_SOURCES;
    return passagesOf(scan, [this.#visible()], this.#filters(scan), id, this.#slots.literal('0', 'int8'));
  }

  /** The caller's filters, by whether they can fail on a passage of `scan`. */
  #filters(scan: GovernedScan): { readonly harmless: readonly Expr[]; readonly others: readonly Expr[] } {
    const no = (): boolean => false;
    const grounds: Grounds = {
      literals: this.#literals,
      column: (ref) => {
        const column = scan.columns.find((c) => c.name === ref.name);
        return column !== undefined && isHarmless(column.expr, grounds);
      },
      call: no,
      node: no,
      queries: new WeakMap(),
    };
    const isSafe = (e: Expr): boolean => isHarmless(e, grounds);
    const { filters } = this.#request;
    return { harmless: filters.filter(isSafe), others: filters.filter((e) => !isSafe(e)) };
  }

  /** The entity that the passage is about is visible. */
  #visible(): Expr {
    const { facet, source } = this.#request;
    const key = this.#key();
    const id = source + ENTITY_SOURCES;
    const scan = governScan(
      { kind: 'entity', id, relation: this.#entity, columns: [facet.keyOfEntity] },
      { access: accessTo(this.#entity, this.#access), minimum: null },
      undefined,
      this.#slots,
    );
    const type = key.type;
    const visible: Select = {
      ...EMPTY,
      from: scan,
      outputs: [{ name: 'key', expr: { kind: 'column', source: id, name: facet.keyOfEntity, type } }],
    };
    const arg: ColumnRef = { kind: 'column', source, name: facet.entityKey, type };
    return { kind: 'in_query', equality: equality(type), arg, query: visible, negated: false, type: 'bool' };
  }

  #ref(scan: GovernedScan, name: string): ColumnRef {
    const column = scan.columns.find((c) => c.name === name);
    if (column === undefined) throw new InternalError(`the store has no column ${name}`);
    return { kind: 'column', source: scan.id, name, type: column.type };
  }

  #plan(query: Select): GovernedPlan {
    const slots = this.#slots.finish();
    verify(query, slots, 'retrieve');
    const { facet } = this.#request;
    return mint({
      form: 'retrieve',
      query,
      runtime: [],
      slots,
      clientOids: [],
      outputs: query.outputs.map(
        (o): OutputColumn => ({
          name: o.name,
          type: o.expr.type,
          source: null,
          redacted: false,
          passageKey: false,
        }),
      ),
      objects: [`osl.facets.${facet.name}`],
      redactedColumns: [],
      maskedColumns: [],
      passageFields: null,
      partialColumns: [],
      connector: facet.connector,
      accessSignature: this.#access.signature,
      catalogVersion: this.#catalog.version,
      policyVersion: this.#access.policyVersion,
      grants: [],
    });
  }
}

/** What is derived from one version's passages: holds nothing but for the passages that it is joined to. */
function derivedScan(
  id: SourceId,
  store: Relation,
  version: FacetVersion,
  pushed: readonly Expr[],
): GovernedScan {
  const own = DERIVED.map(([name, type]) => storedColumn(stored(name), name, type));
  const key = store.columns.filter((c) => c.physical === 'entity_key');
  return Object.freeze({
    kind: 'governed',
    id,
    relation: Object.freeze({ ...store, table: version.derivedTable, columns: [...own, ...key] }),
    columns: own.map((c): GovernedColumn => {
      const { name, type } = c;
      return Object.freeze({ name, type, expr: baseOf(c), masked: 'none' });
    }),
    filter: null,
    pushed,
    fenced: false,
    minimum: null,
  });
}

/** Where the ids begin of what stands beside the stores' own scans; those of a statement stay far below. */
const ENTITY_SOURCES = 1_000_000;
const SOME_SOURCES = 2_000_000;
const DERIVED_SOURCES = 3_000_000;
const WORD_SOURCES = 4_000_000;
const FENCED_SOURCES = 5_000_000;

/** Over arrays of our own making these can neither fail nor tell, whatever `pg_proc` says of arrays at large. */
const SHARES: OperatorDefinition = Object.freeze({
  name: '&&',
  left: 'int4[]',
  right: 'int4[]',
  result: 'bool',
  leakproof: true,
});
const HOLDS: OperatorDefinition = Object.freeze({
  name: '@>',
  left: 'int4[]',
  right: 'int4[]',
  result: 'bool',
  leakproof: true,
});

function oneOf(arg: BaseColumn, array: Expr): Expr {
  return {
    kind: 'quantified',
    definition: equality(arg.type),
    quantifier: 'any',
    arg,
    array,
    type: 'bool',
  };
}

function countOfRows(): Expr {
  const count = resolveFunction('count', ['text']);
  if (count === 'none' || count === 'ambiguous') throw new InternalError('the function table has no count');
  return {
    kind: 'aggregate',
    definition: count.definition,
    args: [],
    distinct: false,
    filter: null,
    orderBy: [],
    metric: null,
    type: 'int8',
  };
}

function equality(type: TypeName): OperatorDefinition {
  const found = resolveOperator('=', type, type);
  if (found === 'none' || found === 'ambiguous')
    throw new InternalError(`the operator table has no equality of ${type}`);
  return found.definition;
}

function columnNames(expr: Expr): readonly string[] {
  const names: string[] = [];
  visitExpr(expr, (e) => {
    if (e.kind === 'column') names.push(e.name);
  });
  return names;
}
