import { identifier, quoteLiteral } from 'osl-compiler/sql-text';
import { generatedSql, sql, sqlName, sqlTable } from '../../../src/base/sql.js';
import {
  type OpenedEngine,
  openEngine,
  type SystemEngine,
  type SystemQueries,
  UpstreamFailure,
} from '../../../src/engine/index.js';
import type { Oid, PgRelation, Policy, Role } from '../catalog/catalog.js';
import { PUBLIC, qualified, signature } from '../catalog/catalog.js';
import { sessionSettings } from '../compare/callers.js';
import type { CheckedDatabase } from '../database.js';
import type { Example, ExampleRow } from './examples.js';

/** Definitions that a copy of the row security needs in addition to the security catalog. */
export interface ScratchDefinitions {
  /** CREATE FUNCTION statements, by OID of the function. */
  readonly functions: ReadonlyMap<Oid, string>;
  readonly enums: readonly { readonly name: string; readonly labels: readonly string[] }[];
  /** Column types with modifiers, by OID of the relation and column name. */
  readonly types: ReadonlyMap<Oid, ReadonlyMap<string, string>>;
}

const FUNCTIONS = sql`
  select p.oid::int8 as id, pg_catalog.pg_get_functiondef(p.oid) as definition
    from pg_catalog.pg_proc p join pg_catalog.pg_namespace n on n.oid = p.pronamespace
   where p.prokind = 'f' and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
     and not exists (select from pg_catalog.pg_depend d where d.objid = p.oid and d.deptype = 'e')`;
const ENUMS = sql`
  select pg_catalog.format_type(t.oid, null) as name, n.nspname::text as schema,
         (select json_agg(e.enumlabel::text order by e.enumsortorder) from pg_catalog.pg_enum e where e.enumtypid = t.oid) as labels
    from pg_catalog.pg_type t join pg_catalog.pg_namespace n on n.oid = t.typnamespace
   where t.typtype = 'e' and n.nspname !~ '^pg_'`;
const TYPES = sql`
  select a.attrelid::int8 as relation, a.attname::text as name, pg_catalog.format_type(a.atttypid, a.atttypmod) as type
    from pg_catalog.pg_attribute a join pg_catalog.pg_class c on c.oid = a.attrelid
    join pg_catalog.pg_namespace n on n.oid = c.relnamespace
   where a.attnum > 0 and not a.attisdropped and c.relkind in ('r', 'p')
     and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
   order by 1, a.attnum`;

/** Reads the definitions from the catalog; reads no rows of tables. */
export function scratchDefinitions(system: SystemEngine): Promise<ScratchDefinitions> {
  return system.transaction(async (tx) => {
    await tx.query(sql`set transaction isolation level repeatable read, read only`);
    await tx.query(sql`select pg_catalog.set_config('search_path', '', true)`);
    const types = new Map<Oid, Map<string, string>>();
    for (const row of await tx.query(TYPES)) {
      const id = Number(row['relation']);
      const own = types.get(id) ?? new Map<string, string>();
      types.set(id, own.set(String(row['name']), String(row['type'])));
    }
    const functions = await tx.query(FUNCTIONS);
    const enums = await tx.query(ENUMS);
    return {
      functions: new Map(functions.map((row) => [Number(row['id']), String(row['definition'])])),
      enums: enums.map((row) => ({
        name: String(row['name']),
        labels: Array.isArray(row['labels']) ? row['labels'].map(String) : [],
      })),
      types,
    };
  });
}

/** An embedded database with another database's tables, functions, roles and policies, but no rows. */
export class ScratchDatabase {
  readonly #engine: OpenedEngine;
  /** Reasons why tables could not be copied completely, by qualified name. */
  readonly #failed: ReadonlyMap<string, string>;
  /** Settings that examples have set: they stay in the session as empty texts. */
  readonly #set = new Set<string>();

  private constructor(engine: OpenedEngine, failed: ReadonlyMap<string, string>) {
    this.#engine = engine;
    this.#failed = failed;
  }

  static async open(database: CheckedDatabase, definitions: ScratchDefinitions): Promise<ScratchDatabase> {
    const engine = await openEngine({ kind: 'pglite', dataDir: null });
    try {
      return new ScratchDatabase(engine, await copied(engine, [...statementsFor(database, definitions)]));
    } catch (error) {
      await engine.close();
      throw error;
    }
  }

  close(): Promise<void> {
    return this.#engine.close();
  }

  /** True if no earlier example has set a setting that must be unset for this one. */
  isFresh({ caller }: Example): boolean {
    return !caller.unset.some((setting) => this.#set.has(setting));
  }

  /**
   * Returns the number of rows of the example's table that its caller sees, or the reason why it is not known. Rolls
   * back the rows of the example.
   */
  async visibleRows(example: Example): Promise<number | string> {
    for (const [setting] of settingsOf(example.caller)) this.#set.add(setting);
    const entities = [example.entity, ...example.others.map((one) => one.entity)];
    const failed = entities
      .map(({ schema, table }) => this.#failed.get(qualified({ schema, name: table })))
      .find((reason) => reason !== undefined);
    if (failed !== undefined) return `the embedded database cannot have the table: ${failed}`;
    try {
      return await this.#engine.system.transaction(async (tx) => {
        throw new DiscardedRun(await rowsIn(tx, example));
      });
    } catch (error) {
      if (error instanceof DiscardedRun) return error.rows;
      throw error;
    }
  }
}

/** Thrown to roll back a transaction; carries its result. */
class DiscardedRun extends Error {
  readonly rows: number | string;

  constructor(rows: number | string) {
    super('seen');
    this.rows = rows;
  }
}

/** Runs all statements at once or, if that fails, one by one. Returns the errors by table. */
async function copied(
  { system }: OpenedEngine,
  statements: readonly ScratchStatement[],
): Promise<ReadonlyMap<string, string>> {
  const failed = new Map<string, string>();
  const all = statements.map(({ text }) => text).join(';\n');
  try {
    await system.script(generatedSql(all));
    return failed;
  } catch (error) {
    if (!(error instanceof UpstreamFailure)) throw error;
  }
  for (const { object, text } of statements)
    await system.script(generatedSql(text)).catch((error: unknown) => {
      if (!(error instanceof UpstreamFailure)) throw error;
      if (object !== null) failed.set(object, error.message);
    });
  return failed;
}

async function rowsIn(
  tx: SystemQueries,
  { entity, row, others, caller, column }: Example,
): Promise<number | string> {
  try {
    for (const one of [{ entity, row }, ...others]) await insert(tx, one.entity, one.row);
    await become(tx, caller);
  } catch (error) {
    if (!(error instanceof UpstreamFailure)) throw error;
    return `the embedded database does not take the example: ${error.message}`;
  }
  return countIn(tx, entity, column);
}

async function insert(
  tx: SystemQueries,
  { schema, table }: Example['entity'],
  row: ExampleRow,
): Promise<void> {
  const cells = [...row];
  const names = cells.map(([name]) => identifier(name)).join(', ');
  const values = cells.map(([, value]) => (value === null ? 'null' : quoteLiteral(value))).join(', ');
  const into = qualified({ schema, name: table });
  await tx.script(generatedSql(`insert into ${into} (${names}) values (${values})`));
}

function settingsOf({ role, settings, claims }: Example['caller']): ReadonlyMap<string, string> {
  return sessionSettings({ name: '', role, settings: Object.fromEntries(settings), claims });
}

async function become(tx: SystemQueries, caller: Example['caller']): Promise<void> {
  for (const [name, value] of settingsOf(caller))
    await tx.query(sql`select pg_catalog.set_config($1, $2, true)`, [name, value]);
  await tx.script(sql`set local role ${sqlName(caller.role)}`);
}

/** SQLSTATEs of a missing privilege and of a policy that reads its own table: the caller then sees no row. */
const ALWAYS_FAILS: ReadonlySet<string> = new Set(['42501', '42P17']);

async function countIn(
  tx: SystemQueries,
  { schema, table, columns }: Example['entity'],
  column: string | null,
): Promise<number | string> {
  const physical = columns.find(({ name }) => name === column)?.physical;
  const value = physical === undefined ? sql`` : sqlName(physical);
  try {
    const rows = await tx.query(
      sql`select count(*)::int4 as n from (select ${value} from ${sqlTable({ schema, table })}) as shown`,
    );
    return Number(rows[0]?.['n']);
  } catch (error) {
    if (!(error instanceof UpstreamFailure)) throw error;
    return ALWAYS_FAILS.has(error.sqlstate) ? 0 : `the database fails for the example: ${error.message}`;
  }
}

interface ScratchStatement {
  /** Table that is incomplete if the statement fails; null if the failure shows only when the object is used. */
  readonly object: string | null;
  readonly text: string;
}

function* statementsFor(
  database: CheckedDatabase,
  definitions: ScratchDefinitions,
): Generator<ScratchStatement> {
  const { catalog } = database;
  const tables = [...catalog.relations.values()].filter(
    ({ kind, extension }) => extension === null && (kind === 'table' || kind === 'partitioned table'),
  );
  const roles = rolesFor(database, tables);
  const other = (text: string): ScratchStatement => ({ object: null, text });
  yield other('set check_function_bodies = off');
  for (const role of roles.values()) yield other(roleSql(role));
  for (const role of roles.values()) yield* membershipsOf(role, roles).map(other);
  for (const { name, owner, grants } of catalog.schemas.values()) {
    yield other(`create schema if not exists ${identifier(name)}`);
    for (const grantee of granteesOf(grants, 'USAGE', roles))
      yield other(`grant usage on schema ${identifier(name)} to ${grantee}`);
    const ownerName = nameIn(owner, roles);
    if (ownerName !== null) yield other(`grant usage on schema ${identifier(name)} to ${ownerName}`);
  }
  for (const { name, labels } of definitions.enums)
    yield other(`create type ${name} as enum (${labels.map(quoteLiteral).join(', ')})`);
  for (const table of tables) yield* tableStatements(table, definitions, roles);
  for (const [id, text] of definitions.functions) {
    const called = catalog.functions.get(id);
    yield other(text);
    const owner = called === undefined ? null : nameIn(called.owner, roles);
    if (called !== undefined && owner !== null)
      yield other(`alter function ${signature(called)} owner to ${owner}`);
  }
  for (const table of tables)
    for (const policy of table.policies) yield policyStatement(table, policy, roles);
}

/** Roles of the examples, owners, roles named in policies, and the roles whose privileges they have. */
function rolesFor(
  { catalog, roles, access }: CheckedDatabase,
  tables: readonly PgRelation[],
): ReadonlyMap<Oid, Role> {
  const wanted = new Set<Oid>([
    ...roles.map(({ id }) => id),
    ...tables.flatMap(({ owner, policies }) => [owner, ...policies.flatMap((policy) => policy.roles)]),
    ...[...catalog.functions.values()].map(({ owner }) => owner),
  ]);
  for (const id of [...wanted]) for (const held of access.privilegesOf(id)) wanted.add(held);
  return new Map(
    [...wanted].flatMap((id): [Oid, Role][] => {
      const role = catalog.roles.get(id);
      return role === undefined || role.name.startsWith('pg_') ? [] : [[id, role]];
    }),
  );
}

function roleSql({ name, superuser, bypassRowSecurity }: Role): string {
  return `create role ${identifier(name)} ${superuser ? 'superuser' : ''} ${bypassRowSecurity ? 'bypassrls' : ''}`;
}

function membershipsOf({ name, memberships }: Role, roles: ReadonlyMap<Oid, Role>): readonly string[] {
  return memberships.flatMap(({ role, inherit }) => {
    const group = nameIn(role, roles);
    return group === null ? [] : [`grant ${group} to ${identifier(name)} with inherit ${String(inherit)}`];
  });
}

function nameIn(id: Oid, roles: ReadonlyMap<Oid, Role>): string | null {
  const role = roles.get(id);
  return role === undefined ? null : identifier(role.name);
}

function granteesOf(
  grants: PgRelation['grants'],
  privilege: string,
  roles: ReadonlyMap<Oid, Role>,
): readonly string[] {
  return grants
    .filter((grant) => grant.privilege === privilege)
    .flatMap(({ grantee }) => (grantee === PUBLIC ? 'public' : (nameIn(grantee, roles) ?? [])));
}

function* tableStatements(
  table: PgRelation,
  { types }: ScratchDefinitions,
  roles: ReadonlyMap<Oid, Role>,
): Generator<ScratchStatement> {
  const name = qualified(table);
  const own = (text: string): ScratchStatement => ({ object: name, text });
  const columns = [...(types.get(table.id) ?? [])].map(([column, type]) => `${identifier(column)} ${type}`);
  yield own(`create table ${name} (${columns.join(', ')})`);
  for (const grantee of granteesOf(table.grants, 'SELECT', roles))
    yield own(`grant select on ${name} to ${grantee}`);
  for (const column of table.columns)
    for (const grantee of granteesOf(column.grants, 'SELECT', roles))
      yield own(`grant select (${identifier(column.name)}) on ${name} to ${grantee}`);
  const owner = nameIn(table.owner, roles);
  if (owner !== null) yield own(`alter table ${name} owner to ${owner}`);
  if (table.rowSecurity === 'off') return;
  yield own(`alter table ${name} enable row level security`);
  if (table.rowSecurity === 'forced') yield own(`alter table ${name} force row level security`);
}

function policyStatement(table: PgRelation, policy: Policy, roles: ReadonlyMap<Oid, Role>): ScratchStatement {
  const { name, permissive, command, using } = policy;
  const to = policy.roles.flatMap((id) => (id === PUBLIC ? 'public' : (nameIn(id, roles) ?? [])));
  const rule = using === null || command === 'INSERT' ? '' : `using (${using})`;
  const check =
    policy.check === null || command === 'SELECT' || command === 'DELETE'
      ? ''
      : `with check (${policy.check})`;
  const text = `create policy ${identifier(name)} on ${qualified(table)} as ${permissive ? 'permissive' : 'restrictive'}
    for ${command} to ${to.join(', ')} ${rule} ${check}`;
  return { object: qualified(table), text };
}
