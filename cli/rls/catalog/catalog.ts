import { identifier } from 'osl-compiler/sql-text';

/** The parts of a Postgres catalog that decide who may read and write rows. */

export interface SecurityCatalog {
  readonly database: string;
  readonly server: Server;
  /** Role of the connection that read the catalog. */
  readonly reader: string;
  readonly roles: ReadonlyMap<Oid, Role>;
  readonly schemas: ReadonlyMap<string, PgSchema>;
  /** Tables, views, sequences and foreign tables of all schemas but those of the system. */
  readonly relations: ReadonlyMap<Oid, PgRelation>;
  /** Functions of all schemas but those of the system; aggregates are left out. */
  readonly functions: ReadonlyMap<Oid, DatabaseFunction>;
  /** Names in pg_catalog of which at least one function is not immutable; the most volatile one counts. */
  readonly systemFunctions: ReadonlyMap<string, Volatility>;
  /** Casts that change no byte, as `source>target` by type name. */
  readonly binaryCasts: ReadonlySet<string>;
  readonly publications: readonly PgPublication[];
  readonly defaultPrivileges: readonly DefaultPrivilege[];
  /** Parts that the connected role could not read. */
  readonly unread: readonly UnreadPart[];
}

/** Object identifier, unique within its kind of object and this database; 0 as a role is PUBLIC. */
export type Oid = number;

export const PUBLIC: Oid = 0;

interface Server {
  /** Such as `15.18`. */
  readonly version: string;
  /** `server_version_num`, such as 150018. */
  readonly number: number;
}

export interface Role {
  readonly id: Oid;
  readonly name: string;
  readonly login: boolean;
  readonly superuser: boolean;
  readonly bypassRowSecurity: boolean;
  readonly createRole: boolean;
  readonly replication: boolean;
  readonly memberships: readonly RoleMembership[];
  /** Settings of ALTER ROLE and ALTER DATABASE that apply in this database, such as `row_security=off`. */
  readonly settings: readonly string[];
}

/** One role that another was granted. */
interface RoleMembership {
  readonly role: Oid;
  /** True if the member has the privileges of `role` without SET ROLE. */
  readonly inherit: boolean;
  /** True if the member may SET ROLE to it. */
  readonly set: boolean;
}

export interface Grant {
  readonly grantee: Oid;
  /** Such as `SELECT`. */
  readonly privilege: string;
}

export interface PgSchema {
  readonly name: string;
  readonly owner: Oid;
  readonly grants: readonly Grant[];
}

export type PgRelationKind =
  | 'table'
  | 'partitioned table'
  | 'view'
  | 'materialized view'
  | 'foreign table'
  | 'sequence';

export interface PgRelation {
  readonly id: Oid;
  readonly schema: string;
  readonly name: string;
  readonly kind: PgRelationKind;
  readonly owner: Oid;
  /** Extension that the relation belongs to; otherwise null. */
  readonly extension: string | null;
  /** `enabled`: the owner is exempt. `forced`: the owner is not. */
  readonly rowSecurity: 'off' | 'enabled' | 'forced';
  /** Partitioned tables or tables that this one inherits from. */
  readonly parents: readonly Oid[];
  /** The planner's estimate; null if the table was never analysed. */
  readonly estimatedRows: number | null;
  readonly grants: readonly Grant[];
  readonly columns: readonly PgColumn[];
  readonly policies: readonly Policy[];
  readonly indexes: readonly Index[];
  readonly foreignKeys: readonly PgForeignKey[];
  /** Only of a view or materialized view. */
  readonly view: ViewDefinition | null;
  /** Table of the column that a sequence belongs to; otherwise null. */
  readonly sequenceOf: Oid | null;
}

export interface PgColumn {
  readonly name: string;
  /** As `format_type` writes it without modifiers, such as `character varying`. */
  readonly type: string;
  /** Such as `C`; null if the type has none. */
  readonly collation: string | null;
  /** Expression of the default; null if there is none or the column is an identity. */
  readonly default: string | null;
  readonly identity: boolean;
  /** True if it is NOT NULL. */
  readonly required: boolean;
  /** Privileges on this column alone. */
  readonly grants: readonly Grant[];
}

export type PolicyCommand = 'ALL' | 'SELECT' | 'INSERT' | 'UPDATE' | 'DELETE';

export interface Policy {
  readonly name: string;
  readonly permissive: boolean;
  readonly command: PolicyCommand;
  /** Roles that it is written for; PUBLIC is every role. */
  readonly roles: readonly Oid[];
  /** Text of USING, every name outside pg_catalog qualified. */
  readonly using: string | null;
  /** Text of WITH CHECK. */
  readonly check: string | null;
}

export interface Index {
  readonly name: string;
  readonly method: string;
  readonly unique: boolean;
  /** Constraint that the index belongs to; otherwise null. */
  readonly constraint: string | null;
  readonly partial: boolean;
  readonly keys: readonly IndexKey[];
}

export interface IndexKey {
  /** Null if the key is an expression. */
  readonly column: string | null;
  /** Column name or expression, as Postgres prints it. */
  readonly text: string;
  readonly operatorClass: string;
  /** Search operators of the key's operator family for the type of the key that are not leakproof. */
  readonly leakyOperators: readonly string[];
  /** True if some search operator of that family is leakproof. */
  readonly hasLeakproofOperator: boolean;
}

export interface PgForeignKey {
  readonly name: string;
  readonly columns: readonly string[];
  readonly references: Oid;
  readonly referencedColumns: readonly string[];
}

export interface ViewDefinition {
  readonly definition: string;
  /** From Postgres 15. */
  readonly securityInvoker: boolean;
  readonly securityBarrier: boolean;
  /** Relations that it reads directly. */
  readonly reads: readonly Oid[];
  /** Functions that it calls, also as casts; those of Postgres itself are left out. */
  readonly calls: readonly Oid[];
  /** True if it uses an operator that is not of Postgres itself. */
  readonly foreignOperators: boolean;
}

export type Volatility = 'immutable' | 'stable' | 'volatile';

export interface DatabaseFunction {
  readonly id: Oid;
  readonly schema: string;
  readonly name: string;
  /** Types of the arguments, as in `pg_get_function_identity_arguments` without names. */
  readonly arguments: string;
  /** Empty if they have no names. */
  readonly argumentNames: readonly string[];
  readonly language: string;
  readonly volatility: Volatility;
  readonly leakproof: boolean;
  readonly securityDefiner: boolean;
  readonly owner: Oid;
  readonly extension: string | null;
  readonly returnsTrigger: boolean;
  /** True if it returns rows; otherwise a query in its body counts for its first row alone. */
  readonly returnsSet: boolean;
  /** True if it is NULL, without being called, for a NULL among its arguments. */
  readonly strict: boolean;
  /** Value of SET search_path; null if the function does not set it. */
  readonly searchPath: string | null;
  readonly body: string;
  /** True if the body was bound when it was created (BEGIN ATOMIC or RETURN), so that search_path does not matter. */
  readonly bound: boolean;
  readonly grants: readonly Grant[];
}

export interface PgPublication {
  readonly name: string;
  readonly tables: readonly PublishedTable[];
}

interface PublishedTable {
  readonly relation: Oid;
  /** True if the publication has a WHERE for the table (from Postgres 15). */
  readonly filtered: boolean;
}

/** One privilege that ALTER DEFAULT PRIVILEGES gives on objects of the future. */
export interface DefaultPrivilege {
  /** Role that will create them. */
  readonly creator: Oid;
  /** Null for all schemas. */
  readonly schema: string | null;
  readonly objects: 'tables' | 'sequences' | 'functions' | 'types' | 'schemas' | 'large objects';
  readonly grant: Grant;
}

export interface UnreadPart {
  /** Such as `policies`. */
  readonly part: string;
  /** Message of the database. */
  readonly reason: string;
}

/** Schemas of a search_path, in order. */
export function schemasOf(searchPath: string): readonly string[] {
  return searchPath
    .split(',')
    .map((part) => part.trim().replace(/^"(.*)"$/, '$1'))
    .filter((name) => name !== '');
}

const SEARCH_PATH = 'search_path=';

/** The search_path that ALTER ROLE gives a role, with its name in place of `$user`; null if it gives none. */
export function searchPathOf({ name, settings }: Role): readonly string[] | null {
  const own = settings.find((setting) => setting.startsWith(SEARCH_PATH));
  if (own === undefined) return null;
  return schemasOf(own.slice(SEARCH_PATH.length)).map((schema) => (schema === '$user' ? name : schema));
}

/** Names one object as `pg_identify_object` does, such as `tenants on app.doc` for a policy. */
export interface ObjectIdentity {
  readonly kind: ObjectKind;
  readonly identity: string;
  /** Null for an object of the whole database or server. */
  readonly schema: string | null;
}

type ObjectKind =
  | PgRelation['kind']
  | 'column'
  | 'policy'
  | 'index'
  | 'constraint'
  | 'function'
  | 'role'
  | 'publication'
  | 'default privileges'
  | 'server'
  | 'catalog';

/** Such as `app.doc`, quoted where needed. */
export function qualified({ schema, name }: { readonly schema: string; readonly name: string }): string {
  return `${identifier(schema)}.${identifier(name)}`;
}

export function relationObject(relation: PgRelation): ObjectIdentity {
  return { kind: relation.kind, identity: qualified(relation), schema: relation.schema };
}

export function columnObject(relation: PgRelation, column: string): ObjectIdentity {
  return {
    kind: 'column',
    identity: `${qualified(relation)}.${identifier(column)}`,
    schema: relation.schema,
  };
}

export function policyObject(table: PgRelation, policy: Policy): ObjectIdentity {
  return partOf('policy', table, policy.name);
}

export function partOf(
  kind: 'policy' | 'index' | 'constraint',
  table: PgRelation,
  name: string,
): ObjectIdentity {
  return { kind, identity: `${identifier(name)} on ${qualified(table)}`, schema: table.schema };
}

export function signature(called: DatabaseFunction): string {
  return `${qualified(called)}(${called.arguments})`;
}

export function functionObject(called: DatabaseFunction): ObjectIdentity {
  return { kind: 'function', identity: signature(called), schema: called.schema };
}

export function roleObject({ name }: Role): ObjectIdentity {
  return { kind: 'role', identity: identifier(name), schema: null };
}

/** Names of roles, quoted where needed. */
export function roleNames(roles: readonly Role[]): readonly string[] {
  return roles.map((role) => identifier(role.name));
}
