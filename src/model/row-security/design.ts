import { createHash } from 'node:crypto';
import {
  type Catalog,
  columnsRead,
  type Expr,
  type MatchedAttribute,
  predicateSql,
  quoteLiteral,
  type Relation,
} from 'osl-compiler';
import { attributesOf, MAX_CHAIN, type PolicySnapshot, roleAccess, roleIn } from '../../../policy/index.js';
import { RIGHTS_FAULTS, type RightsSetting } from '../../engine/index.js';
import type { Connector } from '../manifest/index.js';

/**
 * Translates a row filter of the policy to SQL that is true if the filter holds for every subject in the chain. The SQL
 * function `granted` checks separately that each subject has the attributes that the filter uses.
 */
function filterSql(filter: Expr): string {
  const conjuncts = filter.kind === 'and' ? filter.args : [filter];
  return conjuncts.map((c) => (distributes(c) ? shared(c) : unrolled(c))).join(' and ');
}

/**
 * True if testing `expr` once with the attribute values that all subjects share gives the same result as testing it for
 * each subject and combining the results with AND. That holds for AND, and for OR if only one arm has attributes.
 */
function distributes(expr: Expr): boolean {
  if (!mentions(expr)) return true;
  switch (expr.kind) {
    case 'attribute_match':
      return !mentions(expr.arg);
    case 'and':
      return expr.args.every(distributes);
    case 'or':
      return expr.args.filter(mentions).length === 1 && expr.args.every(distributes);
    default:
      return false;
  }
}

function mentions(expr: Expr): boolean {
  return attributesOf(expr).size > 0;
}

/** SQL that tests the filter once, with the attribute values that all subjects in the chain share. */
function shared(expr: Expr): string {
  return predicateSql(expr, (m) => matchSql(m, 'null::int4'));
}

/** SQL that tests the filter for each subject in the chain, written out for the longest chain that a token may have. */
function unrolled(expr: Expr): string {
  let sql = '';
  for (let i = MAX_CHAIN - 1; i >= 0; i--) {
    const one = predicateSql(expr, (m) => matchSql(m, `${i}`));
    sql = i === MAX_CHAIN - 1 ? one : `(${one} and (${call('beyond', `${i + 1}`)} or ${sql}))`;
  }
  return sql;
}

function matchSql({ attribute, arg, operator, type }: MatchedAttribute, subject: string): string {
  const unbound = call('unbound', quoteLiteral(attribute), subject);
  // Without the cast, Postgres would parse the operand of `any` as a subquery of rows, not as an array.
  const values = `${call('shared', quoteLiteral(attribute), subject, `null::${type}`)}::${type}`;
  return `(${unbound} or ${arg} ${operator} any (${values}))`;
}

/** Version of the generated SQL; incrementing it causes existing installations to be rewritten. */
const FORMAT = 1;

/** Row security of one database, derived from the policy in force. */
export interface RowSecurityDesign {
  /** Equal versions grant the same rows and columns to the same rights. Signed rights include the version. */
  readonly version: string;
  readonly role: string;
  /** Tables by `schema.table`. */
  readonly tables: ReadonlyMap<string, GuardedTable>;
  /** Declared tables that no grant reaches; the role may not read them at all. */
  readonly closed: readonly Pick<GuardedTable, 'schema' | 'table'>[];
}

export interface GuardedTable {
  readonly schema: string;
  readonly table: string;
  /** SQL predicate on the table's columns and the session's rights. */
  readonly rows: string;
  /** Columns that at least one grant needs, sorted. The governed role may read only these columns. */
  readonly columns: readonly string[];
}

type DeclaredTables = Pick<Connector, 'name' | 'tables'>;

const KNOWN = new WeakMap<PolicySnapshot, Map<string, RowSecurityDesign>>();

/** Row security that `snapshot` requires in the database of `connector`, where statements run as `role`. */
export function rowSecurityOf(
  connector: DeclaredTables,
  role: string,
  catalog: Catalog,
  snapshot: PolicySnapshot,
): RowSecurityDesign {
  const known = KNOWN.get(snapshot) ?? new Map<string, RowSecurityDesign>();
  KNOWN.set(snapshot, known);
  const key = JSON.stringify([connector.name, role]);
  const found = known.get(key) ?? designTable(connector, role, catalog, snapshot);
  known.set(key, found);
  return found;
}

function designTable(
  connector: DeclaredTables,
  role: string,
  catalog: Catalog,
  snapshot: PolicySnapshot,
): RowSecurityDesign {
  const relations = [...catalog.relations.values()].filter(
    // A facet's source is read only by the indexer, through the system engine.
    (r) => r.connector === connector.name && r.kind !== 'facet' && isGranted(r, snapshot),
  );
  const byTable = new Map<string, Relation[]>();
  for (const relation of relations) {
    const name = `${relation.schema}.${relation.table}`;
    byTable.set(name, [...(byTable.get(name) ?? []), relation]);
  }
  const read = columnsOfRoles(relations, catalog, snapshot);
  const tables = new Map(
    [...byTable].sort(byName).map(([name, governing]): [string, GuardedTable] => {
      const { schema, table } = governing[0] as Relation; // lists are never empty
      const rows = governing.map((r) => rowsSql(r, snapshot)).join(' or ');
      const columns = [...new Set(governing.flatMap((r) => [...(read.get(r) ?? [])]))].sort();
      return [name, Object.freeze({ schema, table, rows, columns })];
    }),
  );
  const closed = [...connector.tables]
    .filter(([name]) => !tables.has(name))
    .sort(byName)
    .map(([, { schema, table }]) => Object.freeze({ schema, table }));
  const version = createHash('sha256')
    .update(JSON.stringify([FORMAT, role, [...tables.values()], closed]))
    .digest('hex')
    .slice(0, 32);
  return Object.freeze({ version, role, tables, closed });
}

function byName([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : 1;
}

function isGranted({ name }: Relation, { roles }: PolicySnapshot): boolean {
  return [...roles.values()].some((role) => (role.grants.get(name)?.length ?? 0) > 0);
}

/** Returns a relation's row condition. Roles with the same filter share an arm, so that it is evaluated once. */
function rowsSql({ name }: Relation, { roles }: PolicySnapshot): string {
  const arms = new Map<string, { readonly roles: Set<string>; readonly filter: Expr | null }>();
  for (const [role, { grants }] of roles) {
    for (const { filter, conditions } of grants.get(name) ?? []) {
      const key = filter === null ? '' : filterSql(filter);
      const arm = arms.get(key) ?? { roles: new Set<string>(), filter };
      arm.roles.add(roleIn(role, conditions?.key ?? null));
      arms.set(key, arm);
    }
  }
  const shown = [...arms].sort(byName).map(([sql, arm]) => armSql(sql, [...arm.roles].sort(), arm.filter));
  const denying = [...roles].filter(([, r]) => r.denied.get(name) === 'all').map(([role]) => role);
  const any = `(${shown.join(' or ')})`;
  return denying.length === 0 ? any : `(not ${call('denied', texts(denying.sort()))} and ${any})`;
}

/** INVARIANT: if one subject lacks an attribute, the whole filter is false. */
function armSql(sql: string, roles: readonly string[], filter: Expr | null): string {
  const needs = filter === null ? [] : [...attributesOf(filter)].sort();
  const granted = call('granted', texts(roles), texts(needs));
  return sql === '' ? granted : `(${granted} and ${sql})`;
}

function columnsOfRoles(
  relations: readonly Relation[],
  catalog: Catalog,
  snapshot: PolicySnapshot,
): ReadonlyMap<Relation, ReadonlySet<string>> {
  const found = new Map(
    relations.map((r): [Relation, Set<string>] => [r, new Set(keysForFacets(r, catalog))]),
  );
  for (const role of snapshot.roles.keys()) {
    const access = roleAccess(role, snapshot, catalog);
    for (const [relation, columns] of found) {
      const rights = access.relations.get(relation.name);
      if (rights !== undefined) for (const c of columnsRead(relation, rights)) columns.add(c);
    }
  }
  return found;
}

/** Returns the keys that facets use for the entity. They must be readable: passages require a visible entity row. */
function keysForFacets(relation: Relation, catalog: Catalog): readonly string[] {
  const keys = [...catalog.facets.values()]
    .filter((f) => f.entity === relation.name)
    .map((f) => f.keyOfEntity);
  return relation.columns.filter((c) => keys.includes(c.name)).map((c) => c.physical);
}

/** Schema of the objects that `osl row-security` creates. */
export const SCHEMA = 'osl_row_security';
/** Setting that holds the rights of a statement's caller. */
export const SETTING: RightsSetting = 'osl.rights';

/** Returns a call of a function in `SCHEMA` as a subquery, which is evaluated once per statement, not per row. */
function call(name: string, ...args: readonly string[]): string {
  return `(select ${SCHEMA}.${name}(${args.join(', ')}))`;
}

function texts(values: readonly string[]): string {
  return `array[${values.map(quoteLiteral).join(', ')}]::text[]`;
}

/** A function in the schema, in a form that can be compared with the installed one. */
interface GuardFunction {
  readonly name: string;
  readonly parameters: string;
  readonly returns: string;
  readonly body: string;
  /** True if the governed role may call the function, because its row security policies call it. */
  readonly open: boolean;
}

/**
 * Returns the rights that the gateway has set for the statement, after checking their signature, version and expiry.
 * The signature is HMAC-SHA-256 computed with stored pads, because core Postgres has no hmac().
 *
 * INVARIANT: any fault makes the statement fail. Treating it as no rights would return too few rows without an error.
 */
const RIGHTS = `
declare
  token text := coalesce(current_setting('${SETTING}', true), '');
  body text := substr(token, 65);
  state ${SCHEMA}.state;
  said jsonb;
begin
  if token = '' then
    raise insufficient_privilege using message = '${RIGHTS_FAULTS.missing}';
  end if;
  select * into strict state from ${SCHEMA}.state;
  if left(token, 64) <> encode(
       sha256(state.outer_pad || sha256(state.inner_pad || convert_to(body, 'UTF8'))), 'hex') then
    raise insufficient_privilege using message = '${RIGHTS_FAULTS.forged}';
  end if;
  said := body::jsonb;
  if said->>'version' <> state.version then
    raise insufficient_privilege using message = '${RIGHTS_FAULTS.outdated}';
  end if;
  if (said->>'ends')::float8 < extract(epoch from now()) then
    raise insufficient_privilege using message = '${RIGHTS_FAULTS.ended}';
  end if;
  return said;
end`;

const GRANTED = `
declare
  said jsonb := ${SCHEMA}.rights();
begin
  return said->'roles' ?| roles
     and jsonb_array_length(said->'chain') > 0
     and not exists (select from jsonb_array_elements(said->'chain') subject where not subject ?& needs);
end`;

const DENIED = `
begin
  return ${SCHEMA}.rights()->'denying' ?| roles;
end`;

const BEYOND = `
begin
  return jsonb_array_length(${SCHEMA}.rights()->'chain') <= place;
end`;

const UNBOUND = `
declare
  said jsonb := ${SCHEMA}.rights();
begin
  return not exists (
    select from jsonb_array_elements(said->'chain') with ordinality subject(of, n)
     where (place is null or n = place + 1) and subject.of->attribute <> 'true');
end`;

/** Body of `shared`: the attribute values that all subjects in the chain share, compared in the type of `kind`. */
const SHARED = `
declare
  said jsonb := ${SCHEMA}.rights();
  held jsonb;
  own kind%type;
  common kind%type;
begin
  for held in
    select subject.of->attribute from jsonb_array_elements(said->'chain') with ordinality subject(of, n)
     where (place is null or n = place + 1) and subject.of->attribute <> 'true'
  loop
    own := array(select jsonb_array_elements_text(held));
    if common is null then
      common := own;
    else
      common := array(select unnest(common) intersect select unnest(own));
    end if;
  end loop;
  return common;
end`;

export const FUNCTIONS: readonly GuardFunction[] = [
  { name: 'rights', parameters: '', returns: 'jsonb', body: RIGHTS, open: false },
  {
    name: 'granted',
    parameters: 'roles text[], needs text[]',
    returns: 'boolean',
    body: GRANTED,
    open: true,
  },
  { name: 'denied', parameters: 'roles text[]', returns: 'boolean', body: DENIED, open: true },
  { name: 'beyond', parameters: 'place int4', returns: 'boolean', body: BEYOND, open: true },
  {
    name: 'unbound',
    parameters: 'attribute text, place int4',
    returns: 'boolean',
    body: UNBOUND,
    open: true,
  },
  {
    name: 'shared',
    parameters: 'attribute text, place int4, kind anyarray',
    returns: 'anyarray',
    body: SHARED,
    open: true,
  },
];

/**
 * INVARIANT: each function runs as its owner, the only role that can read the key, and resolves names only in
 * `pg_catalog`.
 */
export function functionSql({ name, parameters, returns, body }: GuardFunction): string {
  return `create function ${SCHEMA}.${name}(${parameters}) returns ${returns}
language plpgsql stable parallel safe security definer set search_path = pg_catalog, pg_temp
as $osl$${body}$osl$`;
}
