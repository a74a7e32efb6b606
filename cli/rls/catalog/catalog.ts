import { identifier } from 'osl-compiler/sql-text';

/** The parts of a Postgres catalog that determine who can read and write rows. */

export interface SecurityCatalog {
  readonly database: string;
  readonly server: Server;
  /** Role whose connection read the catalog. */
  readonly reader: string;
  readonly roles: ReadonlyMap<Oid, Role>;
  readonly schemas: ReadonlyMap<string, PgSchema>;
  /** Tables, views, sequences and foreign tables in all schemas except system schemas. */
  readonly relations: ReadonlyMap<Oid, PgRelation>;
  /** Functions and procedures in all schemas except system schemas; no aggregates or window functions. */
  readonly functions: ReadonlyMap<Oid, DatabaseFunction>;
  /** Functions in pg_catalog that are not immutable, by name; of overloads, the most volatile one counts. */
  readonly systemFunctions: ReadonlyMap<string, Volatility>;
  /** Binary-coercible casts, as `source>target` with type names. */
  readonly binaryCasts: ReadonlySet<string>;
  readonly publications: readonly PgPublication[];
  readonly defaultPrivileges: readonly DefaultPrivilege[];
  /** Parts that the connected role could not read. */
  readonly unread: readonly UnreadPart[];
}

/** Object identifier, unique per kind of object in this database. As a role, 0 means PUBLIC. */
export type Oid = number;

export const PUBLIC: Oid = 0;

interface Server {
  /** Version text, such as `15.18`. */
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
  /** Settings from ALTER ROLE and ALTER DATABASE that a login in this database gets, such as `row_security=off`. */
  readonly settings: readonly string[];
}

/** Membership of a role in `role`. */
export interface RoleMembership {
  readonly role: Oid;
  /** True if the member has the privileges of `role` without SET ROLE. */
  readonly inherit: boolean;
  /** True if the member may SET ROLE to `role`. */
  readonly set: boolean;
}

export interface Grant {
  readonly grantee: Oid;
  /** Name of the privilege, such as `SELECT`. */
  readonly privilege: string;
}

export interface PgSchema {
  readonly name: string;
  readonly owner: Oid;
  readonly grants: readonly Grant[];
}

type PgRelationKind =
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
  /** `enabled`: the owner is exempt from policies. `forced`: policies apply to the owner too. */
  readonly rowSecurity: 'off' | 'enabled' | 'forced';
  /** Partitioned tables that this table is a partition of, or tables that it inherits from. */
  readonly parents: readonly Oid[];
  /** Row count estimated by the planner; null if the table was never analysed. */
  readonly estimatedRows: number | null;
  readonly grants: readonly Grant[];
  readonly columns: readonly PgColumn[];
  readonly policies: readonly Policy[];
  readonly indexes: readonly Index[];
  readonly foreignKeys: readonly PgForeignKey[];
  /** Definition of a view or materialized view; null for other relations. */
  readonly view: ViewDefinition | null;
  /** Table that owns this sequence through one of its columns; otherwise null. */
  readonly sequenceOf: Oid | null;
}

export interface PgColumn {
  readonly name: string;
  /** Type name from `format_type` without modifiers, such as `character varying`. */
  readonly type: string;
  /** Name of the collation, such as `C`; null if the type has none. */
  readonly collation: string | null;
  /** Default expression; null if there is none or the column is an identity or generated column. */
  readonly default: string | null;
  readonly identity: boolean;
  /** True if the column is NOT NULL. */
  readonly required: boolean;
  /** Privileges granted on this column itself, not on the whole relation. */
  readonly grants: readonly Grant[];
}

type PolicyCommand = 'ALL' | 'SELECT' | 'INSERT' | 'UPDATE' | 'DELETE';

export interface Policy {
  readonly name: string;
  readonly permissive: boolean;
  readonly command: PolicyCommand;
  /** Roles that the policy names; PUBLIC means every role. */
  readonly roles: readonly Oid[];
  /** USING expression, with every name outside pg_catalog qualified; null if there is none. */
  readonly using: string | null;
  /** WITH CHECK expression, in the same form; null if there is none. */
  readonly check: string | null;
  /** Functions that the expressions call, except built-in functions. */
  readonly calls: readonly Oid[];
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
  /** Name of the column; null if the key is an expression. */
  readonly column: string | null;
  /** Column name or expression, as Postgres prints it. */
  readonly text: string;
  readonly operatorClass: string;
  /** Search operators for the key's type, in the family of `operatorClass`, that are not leakproof. */
  readonly leakyOperators: readonly string[];
  /** True if at least one search operator for the key's type in that family is leakproof. */
  readonly hasLeakproofOperator: boolean;
}

export interface PgForeignKey {
  readonly name: string;
  readonly columns: readonly string[];
  readonly references: Oid;
  readonly referencedColumns: readonly string[];
}

interface ViewDefinition {
  readonly definition: string;
  /** True with `security_invoker`, which exists from Postgres 15. */
  readonly securityInvoker: boolean;
  readonly securityBarrier: boolean;
  /** Relations that the view reads directly. */
  readonly reads: readonly Oid[];
  /** Functions that the view calls, including those called by casts, except built-in functions. */
  readonly calls: readonly Oid[];
  /** True if the view uses an operator that is not built into Postgres. */
  readonly foreignOperators: boolean;
}

export type Volatility = 'immutable' | 'stable' | 'volatile';

export interface DatabaseFunction {
  readonly id: Oid;
  readonly schema: string;
  readonly name: string;
  /** Argument types, such as `integer, text`: `pg_get_function_identity_arguments` without names. */
  readonly arguments: string;
  /** Names of the arguments; empty if they have no names. */
  readonly argumentNames: readonly string[];
  readonly language: string;
  readonly volatility: Volatility;
  readonly leakproof: boolean;
  readonly securityDefiner: boolean;
  readonly owner: Oid;
  readonly extension: string | null;
  readonly returnsTrigger: boolean;
  /** True if the function returns a set. Otherwise, only the first row of a query in its body counts. */
  readonly returnsSet: boolean;
  /** True if the function is STRICT: if any argument is NULL, it returns NULL without being called. */
  readonly strict: boolean;
  /** Value of SET search_path; null if the function does not set it. */
  readonly searchPath: string | null;
  readonly body: string;
  /** True if the body was parsed at creation (BEGIN ATOMIC or RETURN) and so ignores search_path. */
  readonly bound: boolean;
  readonly grants: readonly Grant[];
}

interface PgPublication {
  readonly name: string;
  readonly tables: readonly PublishedTable[];
}

export interface PublishedTable {
  readonly relation: Oid;
  /** True if the publication has a WHERE clause for the table (from Postgres 15). */
  readonly filtered: boolean;
}

/** A privilege that ALTER DEFAULT PRIVILEGES grants on objects created in the future. */
export interface DefaultPrivilege {
  /** Role whose new objects get the privilege. */
  readonly creator: Oid;
  /** Schema of the new objects; null for all schemas. */
  readonly schema: string | null;
  readonly objects: 'tables' | 'sequences' | 'functions' | 'types' | 'schemas' | 'large objects';
  readonly grant: Grant;
}

export interface UnreadPart {
  /** Name of the part, such as `policies`. */
  readonly part: string;
  /** Error message of the database. */
  readonly reason: string;
}

/** A name of a search_path, quoted or not, up to the next comma. White space is as Postgres defines it. */
const PATH_NAME =
  /[ \t\n\r\f\v]*(?:"((?:[^"]|"")*)"|([^", \t\n\r\f\v][^, \t\n\r\f\v]*))[ \t\n\r\f\v]*(?:,|$)/gy;

/** Splits a search_path into its schemas, as `SplitIdentifierString` of Postgres does; empty names are left out. */
export function schemasOf(searchPath: string): readonly string[] {
  const names = [...searchPath.matchAll(PATH_NAME)].map(
    ([, quoted, plain = '']) =>
      quoted?.replaceAll('""', '"') ?? plain.replace(/[A-Z]/g, (letter) => letter.toLowerCase()),
  );
  return names.filter((name) => name !== '');
}

const SEARCH_PATH = 'search_path=';

/** The search_path set for a role or this database; null if none is set. */
export function searchPathOf({ settings }: Role): readonly string[] | null {
  const own = settings.find((setting) => setting.startsWith(SEARCH_PATH));
  return own === undefined ? null : schemasOf(own.slice(SEARCH_PATH.length));
}

/** Default search_path of Postgres. */
export const DEFAULT_SEARCH_PATH: readonly string[] = ['$user', 'public'];

/** Returns the schemas of a search_path for a user: `$user` stands for the schema with the user's name. */
export function schemasFor(user: string, searchPath: readonly string[]): readonly string[] {
  return searchPath.map((schema) => (schema === '$user' ? user : schema));
}

/** Identifies an object as `pg_identify_object` does, such as `tenants on app.doc` for a policy. */
export interface ObjectIdentity {
  readonly kind: ObjectKind;
  readonly identity: string;
  /** Schema of the object; null for objects of the whole database or server. */
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

/** Formats a qualified name such as `app.doc`, quoted where needed. */
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

/** Formats the names of roles, quoted where needed. */
export function roleNames(roles: readonly Role[]): readonly string[] {
  return roles.map((role) => identifier(role.name));
}
