import {
  type Access,
  bindPredicate,
  type Catalog,
  type Column,
  compile,
  type EmittedSql,
  emit,
  type GovernedPlan,
  QueryError,
  type Relation,
  type RelationAccess,
  ready,
  valuesOf,
} from 'osl-compiler';
import { Client } from 'pg';
import { emitUngoverned } from '../proof/oracle/internals.js';
import { withoutBarrier } from '../proof/oracle/no-barrier.js';
import { COLUMNS, exprSql, type Query, querySql, STORED, type Table } from './queries.js';

await ready();

/** Schema of the tables that the real compiler and Postgres read. */
const SCHEMA = 'formal';

const RELATIONS: readonly Relation[] = [0, 1, 2].map((i) => ({
  kind: 'entity',
  name: `t${i}`,
  description: null,
  connector: 'main',
  schema: SCHEMA,
  table: `t${i}`,
  columns: COLUMNS.map(
    (name): Column => ({
      name,
      physical: name,
      type: 'int4',
      description: null,
      nullable: true,
      sensitivity: name === 'y' ? 'secret' : null,
      keyDomain: null,
    }),
  ),
  primaryKey: ['id'],
  sealedKeys: [],
  computed: [],
}));

const CATALOG: Catalog = {
  version: 'v',
  joins: 'any',
  relations: new Map(RELATIONS.map((r) => [r.name, r])),
  metrics: new Map(),
  facets: new Map(),
  edges: [],
};

function accessTo(tables: readonly Table[]): Access {
  const relations = RELATIONS.map((relation, i): [string, RelationAccess] => {
    const filters = tables[i]?.filters ?? [];
    const grants = filters.map((filter, at) => ({
      id: `${relation.name}-${at}`,
      columns: new Set(COLUMNS),
      unmask: new Set(at === filters.length - 1 ? ['secret'] : []),
      filter: filter === null ? null : bindPredicate(exprSql(filter, STORED), relation),
    }));
    return [relation.name, { grants, masks: new Map([['secret', 'null']]), denied: new Set() }];
  });
  return { signature: 's', policyVersion: 'p', chainLength: 1, relations: new Map(relations) };
}

/** SQL that makes the tables, empty. */
export const TABLES_SQL = `create schema ${SCHEMA};
  ${RELATIONS.map((r) => `create table ${SCHEMA}.${r.table} (${COLUMNS.map((c) => `${c} int4`).join(', ')});`).join('\n')}
  create index on ${SCHEMA}.t1 (k); create index on ${SCHEMA}.t2 (x);`;

/** SQL that replaces the rows of all tables. */
export function rowsSql(tables: readonly Table[]): string {
  return tables
    .map(({ rows }, i) => {
      const values = rows.map((r) => `(${r.map((v) => v ?? 'null').join(', ')})`).join(', ');
      const insert = rows.length === 0 ? '' : `insert into ${SCHEMA}.t${i} values ${values};`;
      return `delete from ${SCHEMA}.t${i}; ${insert}`;
    })
    .join(' ');
}

/** The governed SQL of queries on one world. */
export class Compiled {
  readonly #access: Access;

  constructor(tables: readonly Table[]) {
    this.#access = accessTo(tables);
  }

  /** Null if the query joins on a column that is masked for the caller, which is refused. */
  plan(query: Query): GovernedPlan | null {
    try {
      return compile(querySql(query), CATALOG, this.#access);
    } catch (error) {
      if (error instanceof QueryError && error.entry === 'keyNotClear') return null;
      throw error;
    }
  }
}

export const governedSql = (plan: GovernedPlan): EmittedSql => emit(plan);

/** The plan's SQL without guards and fences. */
export const unguardedSql = (plan: GovernedPlan): EmittedSql => {
  const { sql, slots } = emitUngoverned(withoutBarrier(plan.query), plan.slots);
  return { sql, slots };
};

/** Settings that make Postgres choose other plans. */
export const PLANNERS: readonly string[] = [
  '',
  'set enable_hashjoin = off; set enable_mergejoin = off; set enable_hashagg = off; set enable_material = off',
  'set join_collapse_limit = 1; set from_collapse_limit = 1; set enable_nestloop = off; set plan_cache_mode = force_generic_plan',
  'set enable_hashjoin = off; set enable_nestloop = off; set enable_seqscan = off; set enable_sort = off',
];

/** A session with settings of its own; runs one statement after another. */
export class PlannerSession {
  readonly #client: Client;
  #last: Promise<unknown> = Promise.resolve();

  private constructor(client: Client) {
    this.#client = client;
  }

  static async open(url: string, settings: string): Promise<PlannerSession> {
    const client = new Client({ connectionString: url });
    await client.connect();
    // Without JIT, which would compile each of the plans whose cost a setting has made enormous.
    await client.query(`set jit = off; ${settings}`);
    return new PlannerSession(client);
  }

  /** Runs statements without parameters. */
  async run(sql: string): Promise<void> {
    await this.#client.query(sql);
  }

  /** Rows or SQLSTATE of a statement, printed as the model prints them. */
  outcome(emitted: EmittedSql): Promise<string> {
    const outcome = this.#last.then(() => outcomeIn(this.#client, emitted));
    this.#last = outcome.catch(() => undefined);
    return outcome;
  }

  close(): Promise<void> {
    return this.#client.end();
  }
}

async function outcomeIn(client: Client, { sql, slots }: EmittedSql): Promise<string> {
  const values = valuesOf<string | null>(slots, {
    text: (value) => value,
    client: () => null,
    attribute: () => [],
    pad: () => '',
    runtime: () => '[]',
    keys: () => [],
    given: () => '',
  });
  try {
    const { rows } = await client.query<unknown[]>({ text: sql, values: [...values], rowMode: 'array' });
    return rows
      .map((r) => r.map((v) => (v === null ? '_' : String(v))).join(','))
      .sort(byBytes)
      .join(';');
  } catch (error) {
    if (error instanceof Error && 'code' in error && typeof error.code === 'string') return `!${error.code}`;
    throw error;
  }
}

const byBytes = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
