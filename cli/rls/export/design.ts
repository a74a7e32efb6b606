import type { Column, Expr, Relation } from 'osl-compiler';
import type { PolicyDocument } from '../../../policy/document.js';
import { attributesOf, type PolicySnapshot } from '../../../policy/index.js';
import type { Connector, Manifest } from '../../../src/model/manifest/index.js';
import { fieldsOf } from '../../output.js';
import type { CallerAttribute } from '../import/caller-value.js';
import { type AttributeSources, Inexpressible } from './attribute-sources.js';
import { conditionSql, type ReadingFunction, Readings } from './condition.js';

/** Row security of one table for one role. */
export interface RoleOnTable {
  readonly role: string;
  /** Physical names of the readable columns, in the order of the table; empty if the role may not read the table. */
  readonly columns: readonly string[];
  /** Conditions of permissive policies. */
  readonly rows: readonly string[];
  /** True if the role is denied the whole table. The denial also holds for logins that have other roles as well. */
  readonly denied: boolean;
  /** Roles that a login must not have as well: it would see cells that no grant shows, so it sees no row. */
  readonly apart: readonly string[];
}

export interface SecuredTable {
  readonly schema: string;
  readonly table: string;
  readonly roles: readonly RoleOnTable[];
}

/** Row security for one database, which works without the gateway. */
export interface ExportedRowSecurity {
  readonly connector: string;
  /** Version of the policy. */
  readonly version: string;
  readonly roles: readonly string[];
  readonly tables: readonly SecuredTable[];
  /** Tables of the connector that no role may read. */
  readonly closed: readonly Pick<SecuredTable, 'schema' | 'table'>[];
  readonly functions: readonly ReadingFunction[];
  /** Attributes named in the policies of each role, including those that functions read. */
  readonly calls: ReadonlyMap<string, ReadonlySet<string>>;
  readonly attributes: readonly CallerAttribute[];
  readonly left: readonly LeftPart[];
}

interface ExportedGrant {
  /** Physical names of the columns. */
  readonly columns: ReadonlySet<string>;
  readonly filter: Expr | null;
  readonly rows: string;
}

/** Writes the policy of one connector's tables as row security. Requires `ready()` of osl-compiler. */
export function exportedRowSecurity(
  connector: Connector,
  manifest: Manifest,
  snapshot: PolicySnapshot,
  sources: AttributeSources,
): ExportedRowSecurity {
  const exporter = new Exporter(connector, manifest, snapshot, sources);
  return exporter.exported();
}

class Exporter {
  readonly #connector: Connector;
  readonly #manifest: Manifest;
  readonly #snapshot: PolicySnapshot;
  readonly #sources: AttributeSources;
  readonly #readings: Readings;
  readonly #left: LeftPart[] = [];
  /** Attributes named in the filters of exported grants, by role. */
  readonly #named = new Map<string, Set<string>>();

  constructor(connector: Connector, manifest: Manifest, snapshot: PolicySnapshot, sources: AttributeSources) {
    this.#connector = connector;
    this.#manifest = manifest;
    this.#snapshot = snapshot;
    this.#sources = sources;
    this.#readings = new Readings(connector.name, snapshot, sources);
  }

  exported(): ExportedRowSecurity {
    const tables = [...this.#tables()].map(([, relations]) => this.#table(relations));
    const secured = tables.filter(({ roles }) => roles.some(({ columns }) => columns.length > 0));
    const concerned = new Set(secured.flatMap((table) => table.roles.flatMap(concernedRoles)));
    const roles = [...this.#snapshot.roles.keys()].filter((role) => concerned.has(role));
    const used = this.#withNeeded(new Set([...this.#named.values()].flatMap((names) => [...names])));
    return {
      connector: this.#connector.name,
      version: this.#snapshot.version,
      roles,
      tables: secured.map((table) => ({
        ...table,
        roles: table.roles.filter(({ role }) => roles.includes(role)),
      })),
      closed: [...this.#connector.tables.values()].filter(
        (table) => !secured.some((one) => isSame(one, table)),
      ),
      functions: this.#readings.functions.filter(({ name }) => used.has(name)),
      calls: this.#named,
      attributes: this.#sources.used.filter(({ name }) => used.has(name)),
      left: [...this.#left, ...leftOfPolicy(this.#manifest, this.#snapshot, used)],
    };
  }

  /** Relations of the connector, grouped by the table that they show. */
  #tables(): ReadonlyMap<string, readonly Relation[]> {
    const found = new Map<string, Relation[]>();
    for (const relation of this.#manifest.catalog.relations.values()) {
      if (relation.connector !== this.#connector.name || relation.kind === 'facet') continue;
      const name = JSON.stringify([relation.schema, relation.table]);
      found.set(name, [...(found.get(name) ?? []), relation]);
    }
    return found;
  }

  #table(relations: readonly Relation[]): SecuredTable {
    const [{ schema, table } = NO_TABLE] = relations;
    const roles = [...this.#snapshot.roles.keys()].map((role) => this.#roleOn(role, relations));
    return {
      schema,
      table,
      roles: roles.map((one) => ({ ...one, apart: this.#apart(one, roles, relations) })),
    };
  }

  #roleOn(role: string, relations: readonly Relation[]): RoleOnTable {
    const policy = this.#snapshot.roles.get(role);
    const denied = relations.some(({ name }) => policy?.denied.get(name) === 'all');
    const nothing = { role, columns: [], rows: [], denied, apart: [] };
    const grants = relations.flatMap((relation) => this.#grants(role, relation));
    if (denied || grants.length === 0) return nothing;
    const columns = columnsOfAll(grants);
    const [{ name: object } = NO_TABLE] = relations;
    const lost = new Set(grants.flatMap((grant) => [...grant.columns].filter((c) => !columns.has(c))));
    if (lost.size > 0)
      this.#leave(
        object,
        role,
        `${list(lost)}: not of all rows that the role sees, and column privileges are for all`,
      );
    const covering = grants.filter((grant) => [...columns].every((c) => grant.columns.has(c)));
    if (covering.length < grants.length)
      this.#leave(object, role, 'rows of grants that have no column in common with the first');
    const named = this.#named.get(role) ?? new Set();
    this.#named.set(role, named);
    for (const { filter } of covering)
      for (const name of filter === null ? [] : attributesOf(filter)) named.add(name);
    const order = relations.flatMap((relation) => relation.columns.map(({ physical }) => physical));
    return {
      ...nothing,
      columns: [...new Set(order)].filter((column) => columns.has(column)),
      rows: [...new Set(covering.map(({ rows }) => rows))],
    };
  }

  #grants(role: string, relation: Relation): readonly ExportedGrant[] {
    const policy = this.#snapshot.roles.get(role);
    const denied = policy?.denied.get(relation.name) ?? new Set<string>();
    if (denied === 'all') return [];
    return (policy?.grants.get(relation.name) ?? []).flatMap((grant) => {
      const { groups, conditions, filter } = grant;
      if (groups !== undefined) {
        this.#leave(relation.name, role, groups.metrics === null ? GROUPS : METRICS);
        return [];
      }
      if (conditions !== null) {
        const keys = Object.keys(JSON.parse(conditions.key)).map((key) => `\`${key}\``);
        this.#leave(relation.name, role, `a grant with ${list(keys)}, which depends on the request`);
        return [];
      }
      const granted = relation.columns.filter(({ name }) => grant.columns.has(name) && !denied.has(name));
      const clear = granted.filter(
        ({ sensitivity }) => sensitivity === null || grant.unmask.has(sensitivity),
      );
      const masked = granted.filter((column) => !clear.includes(column));
      const computed = (relation.computed ?? []).filter(({ name }) => grant.columns.has(name));
      if (masked.length > 0)
        this.#leave(relation.name, role, `${named(masked)}: masked, and here not readable`);
      if (computed.length > 0)
        this.#leave(
          relation.name,
          role,
          `${list(computed.map(({ name }) => name))}: computed by the gateway`,
        );
      if (clear.length === 0) return [];
      const columns = new Set(clear.map(({ physical }) => physical));
      const rows = this.#rows(role, relation, filter);
      return rows === null ? [] : [{ columns, filter, rows }];
    });
  }

  #rows(role: string, relation: Relation, filter: Expr | null): string | null {
    if (filter === null) return 'true';
    try {
      return conditionSql(filter, this.#readings);
    } catch (error) {
      if (!(error instanceof Inexpressible)) throw error;
      this.#leave(relation.name, role, error.message);
      return null;
    }
  }

  /** Roles that together with `one` would show a login cells that the gateway hides; each pair is listed once. */
  #apart(one: RoleOnTable, all: readonly RoleOnTable[], relations: readonly Relation[]): readonly string[] {
    const found = all.filter((other) => {
      if (other.role === one.role) return false;
      const denies = this.#denies(one.role, other, relations) || this.#denies(other.role, one, relations);
      return denies || (one.columns.length > 0 && other.columns.length > 0 && !isUnion(one, other));
    });
    // A policy for one role of each pair is enough.
    const after = found.filter(({ role }) => role > one.role).map(({ role }) => role);
    const [{ name: object } = NO_TABLE] = relations;
    if (after.length > 0)
      this.#leave(
        object,
        one.role,
        `logins that have ${list(after)} besides see no row: together they would see cells that the gateway hides`,
      );
    return after;
  }

  /** True if the role denies a column that `other` may read. */
  #denies(role: string, { columns }: RoleOnTable, relations: readonly Relation[]): boolean {
    return relations.some((relation) => {
      const denied = this.#snapshot.roles.get(role)?.denied.get(relation.name);
      if (denied === undefined || denied === 'all') return false;
      return relation.columns.some(({ name, physical }) => denied.has(name) && columns.includes(physical));
    });
  }

  /** The attributes `names`, and all attributes that they need, directly or indirectly. */
  #withNeeded(names: ReadonlySet<string>): ReadonlySet<string> {
    const found = new Set<string>();
    const add = (name: string): void => {
      if (found.has(name)) return;
      found.add(name);
      for (const needed of this.#snapshot.tableAttributes.get(name)?.needs ?? []) add(needed);
    };
    for (const name of names) add(name);
    return found;
  }

  #leave(object: string, role: string | null, reason: string): void {
    this.#left.push({ object, role, reason });
  }
}

const GROUPS = 'a grant with `min_group_size`, of aggregates and no rows';
const METRICS = 'a grant with `metrics`, of figures and no rows';
const NO_TABLE = { schema: '', table: '', name: '' };

function isSame(
  a: Pick<SecuredTable, 'schema' | 'table'>,
  b: Pick<SecuredTable, 'schema' | 'table'>,
): boolean {
  return a.schema === b.schema && a.table === b.table;
}

/** The role and the roles named in its policies on the table; empty if it has no policies there. */
function concernedRoles({ role, rows, denied, apart }: RoleOnTable): readonly string[] {
  return rows.length > 0 || denied || apart.length > 0 ? [role, ...apart] : [];
}

/** The columns that all grants have in common; if there are none, the columns of the first grant. */
function columnsOfAll(grants: readonly ExportedGrant[]): ReadonlySet<string> {
  const [first = { columns: new Set<string>() }] = grants;
  const common = [...first.columns].filter((column) => grants.every(({ columns }) => columns.has(column)));
  return common.length > 0 ? new Set(common) : first.columns;
}

/** True if a login with both roles sees the cells that either role shows, and no others. */
function isUnion(a: RoleOnTable, b: RoleOnTable): boolean {
  return covers(a, b) || covers(b, a) || (isWithin(a, b) && isWithin(b, a));
}

/** True if `a` shows all rows, and every column of `b`. */
function covers(a: RoleOnTable, b: RoleOnTable): boolean {
  return a.rows.includes('true') && isWithin(b, a);
}

function isWithin({ columns }: RoleOnTable, { columns: wider }: RoleOnTable): boolean {
  return columns.every((column) => wider.includes(column));
}

function named(columns: readonly Column[]): string {
  return list(columns.map(({ name }) => name));
}

function list(names: Iterable<string>): string {
  return [...names].join(', ');
}

/** A part of the policy that the exported row security does not express. */
export interface LeftPart {
  /** Part of the policy, such as an entity, `subjects` or `limits`. */
  readonly object: string;
  /** Null if the part concerns all roles. */
  readonly role: string | null;
  readonly reason: string;
}

/** The parts of a policy that concern more than one table and have no equivalent in row security. */
function leftOfPolicy(
  { catalog }: Manifest,
  { document }: PolicySnapshot,
  used: ReadonlySet<string>,
): readonly LeftPart[] {
  const left: LeftPart[] = [];
  const leave = (object: string, reason: string, role: string | null = null): void =>
    void left.push({ object, role, reason });
  for (const [role, { grants, max_cost, limits }] of Object.entries(document.roles)) {
    for (const on of new Set(grants.map((grant) => grant.on)))
      if (catalog.relations.get(on)?.kind === 'facet')
        leave(on, 'passages of text, which the gateway searches', role);
    if (max_cost !== undefined) leave('max_cost', 'a limit of the gateway', role);
    if (limits !== undefined) leave('limits', 'a limit of the gateway', role);
  }
  for (const key of [
    'limits',
    'order',
    'purposes',
    'privacy_units',
    'service_accounts',
    'certificates',
    'exchange',
  ] as const)
    if (Object.keys(document[key] ?? {}).length > 0) leave(key, REASONS[key]);
  if (Object.keys(document.subjects).length > 0)
    leave(
      'subjects',
      'who has which role: GRANT role TO login; a chain of several subjects has no equivalent',
    );
  for (const name of anyAttributes(document))
    if (used.has(name))
      leave('subjects', `attribute \`${name}\` with {any: true}: no setting says so, so they see less`);
  if (catalog.metrics.size > 0) leave('metrics', 'the gateway computes them');
  if (catalog.joins === 'declared') leave('joins', 'SQL may join on any column');
  return left;
}

const REASONS = {
  limits: 'limits of the gateway',
  order: 'an order of results without ORDER BY',
  purposes: 'grants for a purpose are left out',
  privacy_units: 'grants of aggregates are left out',
  service_accounts: 'logins of the gateway: GRANT role TO login',
  certificates: 'logins of the gateway: GRANT role TO login',
  exchange: 'roles by claims of tokens: GRANT role TO login, or SET ROLE',
} as const;

function anyAttributes({ subjects, exchange = [] }: PolicyDocument): ReadonlySet<string> {
  const all = [...Object.values(subjects), ...exchange].flatMap(({ attributes }) =>
    Object.entries(attributes ?? {}),
  );
  return new Set(all.filter(([, value]) => fieldsOf(value)['any'] === true).map(([name]) => name));
}
