import { join, resolve } from 'node:path';
import { nearest } from 'osl-compiler';
import { identifier } from 'osl-compiler/sql-text';
import type { PolicySnapshot } from '../../policy/index.js';
import { sql } from '../../src/base/sql.js';
import type { SystemEngine } from '../../src/engine/index.js';
import { type Survey, surveyPostgres } from '../../src/engine/index.js';
import type { Manifest } from '../../src/model/manifest/index.js';
import { OTHERS_POLICY, ROWS_POLICY, SCHEMA } from '../../src/model/row-security/index.js';
import {
  connectorUrl,
  describeConnectFault,
  readUrlFile,
  withoutPassword,
} from '../../src/service/connector-url.js';
import { loadModel } from '../../src/service/model.js';
import { usage } from '../exit.js';
import { type RolePrivileges, roleAccess } from './catalog/access.js';
import {
  type DatabaseFunction,
  type Oid,
  type PgRelation,
  type Policy,
  PUBLIC,
  type Role,
  type SecurityCatalog,
} from './catalog/catalog.js';
import { readCatalog } from './catalog/read.js';
import { analyseCondition, type Expression, type ParsedExpression } from './expression.js';
import type { CalledName } from './nodes.js';
import { type RelationName, relationsOfFunction } from './statement.js';

/** Flags that select a database, and the schemas and roles to check. */
export interface DatabaseFlags {
  readonly url?: string;
  readonly urlFile?: string;
  readonly schema?: readonly string[];
  readonly role?: readonly string[];
}

const URL_VARIABLE = 'DATABASE_URL';

/** Database URL from the flags or the environment. @throws Failure if it is missing or not a Postgres URL */
export async function urlOf({ url, urlFile }: DatabaseFlags): Promise<string> {
  const given =
    url ?? (urlFile === undefined ? await connectorUrl(process.env, URL_VARIABLE) : readUrlFile(urlFile));
  if (given === null) throw usage(`which database? Give --url or --url-file, or set ${URL_VARIABLE}`);
  if (!/^postgres(ql)?:\/\//.test(given) || !URL.canParse(given))
    throw usage('the URL of a database looks like postgres://user:password@host:5432/database');
  return given;
}

/** Oldest supported major version; older servers lack columns of the system catalog. */
const OLDEST = 14;

/** Connects to a database. @throws Failure if it cannot be reached, or its version is too old */
export async function openDatabase(url: string): Promise<Survey> {
  const survey = await surveyPostgres(url).catch((error: unknown) => {
    throw usage(`${withoutPassword(url)}: ${describeConnectFault(error)}`);
  });
  const version = survey.report.serverVersion;
  if (Number.parseInt(version, 10) >= OLDEST) return survey;
  survey.close();
  throw usage(`the server is PostgreSQL ${version}; row security is read from ${OLDEST} or newer`);
}

export function catalogOf({ system }: Survey): Promise<SecurityCatalog> {
  return system.transaction(async (tx) => {
    await tx.query(sql`set transaction isolation level repeatable read, read only`);
    return readCatalog(tx);
  });
}

/** Reads the whole catalog. @throws Failure if a part cannot be read, as that part could restrict rows */
export async function wholeCatalogOf(survey: Survey): Promise<SecurityCatalog> {
  const catalog = await catalogOf(survey);
  const [unread] = catalog.unread;
  if (unread !== undefined)
    throw usage(`${catalog.reader} may not read the ${unread.part}: ${unread.reason}`);
  return catalog;
}

/** Connects to a database, reads its catalog, runs `work` and disconnects. @throws Failure */
export async function withDatabase<T>(
  url: string,
  flags: DatabaseFlags,
  work: (database: CheckedDatabase, system: SystemEngine) => Promise<T>,
): Promise<T> {
  const survey = await openDatabase(url);
  try {
    const catalog = await catalogOf(survey);
    return await work(checkedDatabase(catalog, scopeOf(flags, catalog)), survey.system);
  } finally {
    survey.close();
  }
}

/** Manifest and policy in a folder. */
export interface FolderModel {
  readonly manifestFile: string;
  readonly policyFile: string;
  readonly manifest: Manifest;
  readonly snapshot: PolicySnapshot;
}

/** Loads the model in a folder. @throws Failure if the policy is not valid; the errors of `loadModel` */
export async function loadFolder(folder: string): Promise<FolderModel> {
  const dir = resolve(process.cwd(), folder);
  const [manifestFile, policyFile] = [join(dir, 'manifest.yaml'), join(dir, 'policy.yaml')];
  const { manifest, snapshot } = await loadModel(manifestFile, policyFile, null);
  if (snapshot === null) throw usage(`${policyFile} is not a policy`);
  return { manifestFile, policyFile, manifest, snapshot };
}

/** Returns the scope selected by the flags. @throws Failure for names that do not exist in the database */
export function scopeOf({ schema, role }: DatabaseFlags, { schemas, roles }: SecurityCatalog): CheckScope {
  for (const name of schema ?? []) requireKnown('schema', name, [...schemas.keys()]);
  for (const name of role ?? [])
    requireKnown(
      'role',
      name,
      [...roles.values()].map((r) => r.name),
    );
  return {
    schemas: schema === undefined ? null : new Set(schema),
    roles: role === undefined ? null : new Set(role),
  };
}

/** Rejects unknown names, because a misspelled name would silently check nothing. @throws Failure */
export function requireKnown(kind: string, name: string, known: readonly string[]): void {
  if (known.includes(name)) return;
  const near = nearest(name, known);
  throw usage(`there is no ${kind} ${name}${near === null ? '' : `: perhaps you meant ${near}`}`);
}

/** Schemas and roles to which a check is limited. */
export interface CheckScope {
  /** Names of the schemas; null for all. */
  readonly schemas: ReadonlySet<string> | null;
  /** Names of the roles; null for all roles except superusers and predefined roles. */
  readonly roles: ReadonlySet<string> | null;
}

/** A policy with its parsed clauses; `using` and `check` are null if the policy lacks them. */
export interface AnalysedPolicy {
  readonly table: PgRelation;
  readonly policy: Policy;
  readonly using: Expression | null;
  readonly check: Expression | null;
  /** The clauses that could be parsed. */
  readonly parsed: readonly ParsedExpression[];
}

/** A catalog prepared for the rules. Its lists contain only objects in scope; lookups find all objects. */
export interface CheckedDatabase {
  readonly catalog: SecurityCatalog;
  readonly access: RolePrivileges;
  /** Roles to report findings about. */
  readonly roles: readonly Role[];
  readonly relations: readonly PgRelation[];
  /** Tables with row security enabled. */
  readonly protectedTables: readonly PgRelation[];
  /**
   * Policies of all tables in scope, whether or not row security is enabled, without those written by `osl
   * row-security`, which compares its policies itself.
   */
  readonly policies: readonly AnalysedPolicy[];
  readonly functions: readonly DatabaseFunction[];
  policiesOf(table: PgRelation): readonly AnalysedPolicy[];
  /** Finds a relation by name; null if there is none, or if the name is unqualified and several have it. */
  relationNamed(name: RelationName): PgRelation | null;
  /** User-defined functions of a name, all overloads. */
  functionsNamed(call: CalledName): readonly DatabaseFunction[];
  /** User-defined functions that a policy calls. */
  functionsOf(analysed: AnalysedPolicy): readonly DatabaseFunction[];
  /** Relations named in the body of a function. */
  readsOf(called: DatabaseFunction): readonly PgRelation[];
  roleName(id: Oid): string;
  /** True if the policy names the role, PUBLIC, or a role whose privileges this role inherits. */
  isFor(policy: Policy, role: Pick<Role, 'id'>): boolean;
  /** True if the policy applies to the role, and the role has a privilege for one of the policy's commands. */
  mayUse(analysed: AnalysedPolicy, role: Role): boolean;
  /** Checked roles that may use the policy and that are not exempt from row security on its table. */
  affectedRoles(analysed: AnalysedPolicy): readonly Role[];
  /**
   * Names of the checked roles that have a privilege on a relation or one of its columns, without its owners and
   * superusers; only PUBLIC if the privilege is granted to PUBLIC.
   */
  holders(privilege: string, relation: PgRelation): readonly string[];
}

/** Prepares a catalog for the rules. Requires `ready()` of osl-compiler. */
export function checkedDatabase(catalog: SecurityCatalog, scope: CheckScope): CheckedDatabase {
  const access = roleAccess(catalog);
  const isInScope = ({ schema }: { readonly schema: string }): boolean => scope.schemas?.has(schema) ?? true;
  const relations = [...catalog.relations.values()].filter((r) => isInScope(r) && r.extension === null);
  const analysed = new Map(
    [...catalog.relations.values()].map((table) => [
      table.id,
      table.policies.map((p) => analysedPolicy(table, p)),
    ]),
  );
  const policiesOf = (table: PgRelation): readonly AnalysedPolicy[] => analysed.get(table.id) ?? [];
  const roles = [...catalog.roles.values()].filter((role) =>
    scope.roles === null ? !role.superuser && !role.name.startsWith('pg_') : scope.roles.has(role.name),
  );
  const isFor = (policy: Policy, { id }: Pick<Role, 'id'>): boolean =>
    policy.roles.some((role) => role === PUBLIC || access.privilegesOf(id).has(role));
  const mayUse = ({ table, policy }: AnalysedPolicy, role: Role): boolean =>
    isFor(policy, role) &&
    COMMANDS.some((command) => governs(policy, command) && access.holdsAny(role.id, command, table));
  const lookups = lookupsOf(catalog);
  const reads = new Map<Oid, readonly PgRelation[]>();
  return {
    catalog,
    access,
    roles,
    relations,
    protectedTables: relations.filter((r) => r.rowSecurity !== 'off'),
    policies: relations.flatMap(policiesOf).filter(({ policy }) => !isOfGateway(policy, catalog)),
    functions: [...catalog.functions.values()].filter((f) => isInScope(f) && f.extension === null),
    policiesOf,
    ...lookups,
    functionsOf: ({ policy }) => policy.calls.flatMap((id) => catalog.functions.get(id) ?? []),
    readsOf: (called) => {
      const known =
        reads.get(called.id) ??
        relationsOfFunction(called).flatMap((name) => lookups.relationNamed(name) ?? []);
      reads.set(called.id, known);
      return known;
    },
    roleName: (id) => (id === PUBLIC ? 'PUBLIC' : identifier(catalog.roles.get(id)?.name ?? String(id))),
    isFor,
    mayUse,
    affectedRoles: (analysed) =>
      roles.filter((role) => mayUse(analysed, role) && access.exemption(role.id, analysed.table) === null),
    holders: (privilege, relation) => holdersOf(privilege, relation, roles, access),
  };
}

function analysedPolicy(table: PgRelation, policy: Policy): AnalysedPolicy {
  const using = policy.using === null ? null : analyseCondition(policy.using);
  const check = policy.check === null ? null : analyseCondition(policy.check);
  const parsed = [using, check].filter((e) => e?.kind === 'parsed');
  return { table, policy, using, check, parsed };
}

/** True for a policy that `osl row-security` wrote. */
export function isOfGateway({ name }: Policy, { schemas }: Pick<SecurityCatalog, 'schemas'>): boolean {
  return schemas.has(SCHEMA) && (name === ROWS_POLICY || name === OTHERS_POLICY);
}

function lookupsOf({ relations, functions }: SecurityCatalog) {
  const byName = new Map<string, readonly PgRelation[]>();
  const add = (key: string, relation: PgRelation): void => {
    byName.set(key, [...(byName.get(key) ?? []), relation]);
  };
  for (const relation of relations.values()) {
    add(JSON.stringify([relation.schema, relation.name]), relation);
    add(JSON.stringify([null, relation.name]), relation);
  }
  const functionsByName = new Map<string, readonly DatabaseFunction[]>();
  for (const called of functions.values()) {
    const key = JSON.stringify([called.schema, called.name]);
    functionsByName.set(key, [...(functionsByName.get(key) ?? []), called]);
  }
  return {
    relationNamed: ({ schema, name }: RelationName): PgRelation | null => {
      const named = byName.get(JSON.stringify([schema, name])) ?? [];
      return named.length === 1 ? (named[0] ?? null) : null;
    },
    functionsNamed: ({ schema, name }: CalledName): readonly DatabaseFunction[] =>
      functionsByName.get(JSON.stringify([schema, name])) ?? [],
  };
}

function holdersOf(
  privilege: string,
  relation: PgRelation,
  roles: readonly Role[],
  access: RolePrivileges,
): readonly string[] {
  const holders = roles.filter(
    (role) =>
      !role.superuser &&
      !access.privilegesOf(role.id).has(relation.owner) &&
      access.holdsAny(role.id, privilege, relation),
  );
  const isPublic = relation.grants.some((g) => g.grantee === PUBLIC && g.privilege === privilege);
  if (isPublic && holders.length > 0) return ['PUBLIC'];
  return holders.map((role) => identifier(role.name));
}

const COMMANDS = ['SELECT', 'INSERT', 'UPDATE', 'DELETE'] as const;

/** The parents of a partition or inheriting table and their parents, nearest first. */
export function ancestorsOf({ relations }: SecurityCatalog, child: PgRelation): readonly PgRelation[] {
  const seen = new Set([child]);
  for (const { parents } of seen)
    for (const parent of parents.flatMap((id) => relations.get(id) ?? [])) seen.add(parent);
  return [...seen].slice(1);
}

/** True if the policy applies to a command. */
export function governs({ command }: Policy, wanted: (typeof COMMANDS)[number]): boolean {
  return command === 'ALL' || command === wanted;
}

const MOST_NAMED = 5;

/** Formats a list for a message, such as `a, b and 3 more`. */
export function listed(names: readonly string[]): string {
  const more = names.length - MOST_NAMED;
  if (more <= 0) return names.join(', ');
  return `${names.slice(0, MOST_NAMED).join(', ')} and ${more} more`;
}
