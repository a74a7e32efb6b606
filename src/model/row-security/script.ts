import { quoteIdentifier, quoteLiteral, tableSql } from 'osl-compiler';
import { generatedSql, type Sql, sql, sqlText } from '../../base/sql.js';
import type { SystemEngine } from '../../engine/index.js';
import { FUNCTIONS, functionSql, type GuardedTable, type RowSecurityDesign, SCHEMA } from './design.js';
import { padsOf } from './rights.js';

/** Names of our policy on a table, and of the second policy, which leaves the access of all other roles unchanged. */
export const ROWS_POLICY = 'osl_rows';
export const OTHERS_POLICY = 'osl_others';

/** First word of the comment that we store on a policy: `osl <version> <digest>`. */
export const COMMENT = 'osl';

/**
 * Returns the statements, for one transaction, that remove everything installed before and install `design`. They must
 * be run by a role that owns the tables. They contain the key: anyone who reads them can bypass this second line of
 * defence, but not the first.
 */
export function rowSecurityScript(design: RowSecurityDesign, key: Uint8Array): readonly Sql[] {
  const role = quoteIdentifier(design.role);
  return [
    `set local search_path = pg_catalog, pg_temp`,
    `set local standard_conforming_strings = on`,
    `set local lock_timeout = '10s'`,
    ...clearingStatements(),
    `create schema ${SCHEMA}`,
    `grant usage on schema ${SCHEMA} to ${role}`,
    ...stateSql(design.version, key),
    ...FUNCTIONS.flatMap((f) => {
      const signature = `${SCHEMA}.${f.name}`;
      const open = f.open ? [`grant execute on function ${signature} to ${role}`] : [];
      return [functionSql(f), `revoke all on function ${signature} from public`, ...open];
    }),
    ...[...design.tables.values()].flatMap((table) => [
      ...privilegesSql(table, role),
      guardSql(table, role, design.role),
    ]),
    ...design.closed.map((table) => closedSql(table, role)),
    commentSql(design.version),
  ].map(generatedSql);
}

/**
 * Returns statements of one transaction that remove everything an earlier script created, and disable row security if
 * that script enabled it. They fail if our schema contains objects that are not ours.
 */
export function clearingScript(): readonly Sql[] {
  return clearingStatements().map(generatedSql);
}

function clearingStatements(): readonly string[] {
  return [
    block(`
declare
  ours record;
begin
  for ours in
    select p.polname as name, p.polrelid::regclass as relation
      from pg_policy p
     where p.polname in (${quoteLiteral(ROWS_POLICY)}, ${quoteLiteral(OTHERS_POLICY)})
       and obj_description(p.oid, 'pg_policy') like ${quoteLiteral(`${COMMENT} %`)}
  loop
    execute format('drop policy %I on %s', ours.name, ours.relation);
    if ours.name = ${quoteLiteral(OTHERS_POLICY)} then
      execute format('alter table %s disable row level security', ours.relation);
    end if;
  end loop;
end`),
    ...FUNCTIONS.map((f) => `drop function if exists ${SCHEMA}.${f.name}(${f.parameters})`),
    `drop table if exists ${SCHEMA}.state`,
    // INVARIANT: this fails, and with it the transaction, if the schema holds anything that is not ours.
    `drop schema if exists ${SCHEMA}`,
  ];
}

/** Wraps `body` in an anonymous block, with a dollar quote that it does not contain. */
function block(body: string): string {
  let tag = '$osl$';
  for (let n = 1; body.includes(tag); n++) tag = `$osl${n}$`;
  return `do ${tag}${body}\n${tag}`;
}

function stateSql(version: string, key: Uint8Array): readonly string[] {
  const { inner, outer } = padsOf(key);
  const bytes = (pad: Buffer): string => `'\\x${pad.toString('hex')}'::bytea`;
  return [
    `create table ${SCHEMA}.state (inner_pad bytea not null, outer_pad bytea not null, version text not null)`,
    `revoke all on ${SCHEMA}.state from public`,
    `insert into ${SCHEMA}.state values (${bytes(inner)}, ${bytes(outer)}, ${quoteLiteral(version)})`,
  ];
}

/** Grants `role` only the listed columns of the table. `revoke all` on a table also revokes grants on columns. */
function privilegesSql(table: GuardedTable, role: string): readonly string[] {
  const columns = table.columns.map(quoteIdentifier).join(', ');
  return [
    `revoke all on ${tableSql(table)} from ${role}`,
    ...(table.columns.length === 0 ? [] : [`grant select (${columns}) on ${tableSql(table)} to ${role}`]),
  ];
}

/**
 * If a table has no row security, enables it with a second policy that leaves the access of all other roles unchanged.
 * If it has row security, our policy is restrictive: it only removes rows. Views cannot have policies.
 */
function guardSql(table: GuardedTable, role: string, name: string): string {
  const relation = tableSql(table);
  const others = `session_user <> ${quoteLiteral(name)}`;
  return block(`
declare
  kind "char";
  guarded boolean;
begin
  select relkind, relrowsecurity into strict kind, guarded from pg_class where oid = ${quoteLiteral(relation)}::regclass;
  if kind not in ('r', 'p') then
    return;
  elsif guarded then
    create policy ${ROWS_POLICY} on ${relation} as restrictive for select to ${role}
      using (${table.rows});
  else
    create policy ${ROWS_POLICY} on ${relation} for select to ${role}
      using (${table.rows});
    create policy ${OTHERS_POLICY} on ${relation} using (${others}) with check (${others});
    alter table ${relation} enable row level security;
  end if;
end`);
}

/** Revokes access to a declared table. A missing table counts as drift, which `osl doctor` reports. */
function closedSql(table: Pick<GuardedTable, 'schema' | 'table'>, role: string): string {
  const relation = tableSql(table);
  return block(`
begin
  if to_regclass(${quoteLiteral(relation)}) is not null then
    revoke all on ${relation} from ${role};
  end if;
end`);
}

/** Stores a digest of each of our policies, as Postgres prints it, in the policy's comment, to detect alterations. */
function commentSql(version: string): string {
  return block(`
declare
  ours record;
begin
  for ours in
    select p.polname as name, p.polrelid::regclass as relation, ${DIGEST} as digest
      from pg_policy p
     where p.polname in (${quoteLiteral(ROWS_POLICY)}, ${quoteLiteral(OTHERS_POLICY)})
       and obj_description(p.oid, 'pg_policy') is null
  loop
    execute format('comment on policy %I on %s is %L', ours.name, ours.relation,
                   ${quoteLiteral(`${COMMENT} ${version} `)} || ours.digest);
  end loop;
end`);
}

/** Digest of policy `p`. The search path must be `pg_catalog, pg_temp`, so that names are fully qualified. */
export const DIGEST = sql`encode(sha256(convert_to(concat_ws(' ', p.polcmd, p.polpermissive, p.polroles::regrole[],
                   pg_get_expr(p.polqual, p.polrelid), pg_get_expr(p.polwithcheck, p.polrelid)), 'UTF8')), 'hex')`;

/** A role lacks a privilege needed to install row security; the message names both. */
export class MissingPrivilege extends Error {}

/** The database has row security of another gateway; the message says for which role. */
export class ForeignRowSecurity extends Error {}

/**
 * Replaces the installed row security with `design` in one transaction, with the rights of the tables' owner.
 *
 * @throws MissingPrivilege; ForeignRowSecurity; UpstreamFailure, in which case nothing has changed
 */
export async function writeRowSecurity(
  door: SystemEngine,
  design: RowSecurityDesign,
  key: Uint8Array,
): Promise<void> {
  await checkPrivileges(door, design);
  await door.transaction(async (tx) => {
    for (const statement of rowSecurityScript(design, key)) await tx.script(statement);
  });
}

async function checkPrivileges(door: SystemEngine, { tables, role }: RowSecurityDesign): Promise<void> {
  const [row] = await door.query(
    sql`select pg_catalog.has_database_privilege(current_database(), 'CREATE') as creates,
            array(select n.nspname || '.' || c.relname
                    from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
                   where n.nspname || '.' || c.relname = any ($1) and c.relkind in ('r', 'p', 'v', 'm', 'f')
                     and not pg_catalog.pg_has_role(current_user, c.relowner, 'USAGE')
                   order by 1)::text[] as others,
            array(select distinct r::pg_catalog.regrole::text from pg_catalog.pg_policy p, unnest(p.polroles) r
                   where p.polname = ${sqlText(ROWS_POLICY)} and r::pg_catalog.regrole::text <> pg_catalog.quote_ident($2)
                     and pg_catalog.obj_description(p.oid, 'pg_policy') like ${sqlText(`${COMMENT} %`)})::text[] as guarded`,
    [[...tables.keys()], role],
  );
  const [guarded] = Array.isArray(row?.['guarded']) ? row['guarded'].map(String) : [];
  if (guarded !== undefined) {
    throw new ForeignRowSecurity(
      `row security of another gateway, for role ${guarded}, stands in this database; \`osl row-security --drop\` ends it`,
    );
  }
  const others = Array.isArray(row?.['others']) ? row['others'].map(String) : [];
  const who = `role "${door.reader}"`;
  if (others.length > 0) throw new MissingPrivilege(`${who} does not own ${others.slice(0, 5).join(', ')}`);
  if (row?.['creates'] !== true) throw new MissingPrivilege(`${who} may not make the schema ${SCHEMA}`);
}
