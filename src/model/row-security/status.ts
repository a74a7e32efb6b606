import { sql, sqlName, sqlText } from '../../base/sql.js';
import { type SystemEngine, type SystemQueries, UpstreamFailure } from '../../engine/index.js';
import { FUNCTIONS, type GuardedTable, type RowSecurityDesign, SCHEMA, SETTING } from './design.js';
import { signedRights } from './rights.js';
import { COMMENT, DIGEST, OTHERS_POLICY, ROWS_POLICY } from './script.js';

/** The result of comparing a database's row security with what a policy requires. */
export interface RowSecurityStatus {
  /** Reasons the row security is not effective, or differs from the policy. */
  readonly faults: readonly string[];
  /** Relations that cannot have policies: views and foreign tables. */
  readonly uncovered: readonly string[];
}

/**
 * Compares the installed row security with `design`, connected as the governed role. Reads no rows.
 * @throws UpstreamFailure
 */
export function rowSecurityStatus(
  door: SystemEngine,
  design: RowSecurityDesign,
  key: Uint8Array,
): Promise<RowSecurityStatus> {
  return door.transaction(async (tx) => {
    await tx.script(sql`set transaction read only; set local search_path = pg_catalog, pg_temp`);
    const relations = await relationsIn(tx, design);
    const policies = await policiesOn(tx, design);
    const faults = [
      ...[...design.tables].flatMap(([name, table]) =>
        tableFaults(name, table, relations.get(name), policies.get(name) ?? [], design.version),
      ),
      ...design.closed.flatMap(({ schema, table }) => closedFaults(relations.get(`${schema}.${table}`))),
      ...(await membershipFaults(tx, design)),
      ...(await functionFaults(tx)),
    ];
    // Runs last, because a failure ends the transaction.
    const refused = faults.length > 0 ? [] : await rightsFaults(tx, design, key);
    const uncovered = [...design.tables.keys()].filter((name) => relations.get(name)?.bears === false);
    return { faults: [...faults, ...refused], uncovered };
  });
}

interface InstalledRelation {
  readonly name: string;
  /** True if the relation can have policies. */
  readonly bears: boolean;
  readonly guarded: boolean;
  readonly owned: boolean;
  readonly columns: readonly string[];
}

async function relationsIn(
  tx: SystemQueries,
  design: RowSecurityDesign,
): Promise<ReadonlyMap<string, InstalledRelation>> {
  const rows = await tx.query(
    sql`select n.nspname || '.' || c.relname as name, c.relkind in ('r', 'p') as bears, c.relrowsecurity as guarded,
            pg_has_role(current_user, c.relowner, 'USAGE') as owned,
            array(select a.attname::text from pg_attribute a
                   where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
                     and has_column_privilege(c.oid, a.attnum, 'SELECT')
                   order by 1) as columns
       from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where n.nspname || '.' || c.relname = any ($1) and c.relkind in ('r', 'p', 'v', 'm', 'f')`,
    [namesOf(design)],
  );
  return new Map(
    rows.map((row): [string, InstalledRelation] => {
      const name = String(row['name']);
      const columns = Array.isArray(row['columns']) ? row['columns'].map(String) : [];
      const flag = (column: string): boolean => row[column] === true;
      return [name, { name, bears: flag('bears'), guarded: flag('guarded'), owned: flag('owned'), columns }];
    }),
  );
}

function namesOf({ tables, closed }: RowSecurityDesign): readonly string[] {
  return [...tables.keys(), ...closed.map((t) => `${t.schema}.${t.table}`)];
}

interface InstalledPolicy {
  readonly name: string;
  readonly permissive: boolean;
  /** True if the policy affects which rows the governed role reads. */
  readonly applies: boolean;
  /** Comment on the policy, without the digest; null if the digest shows that the policy was altered. */
  readonly comment: string | null;
}

async function policiesOn(
  tx: SystemQueries,
  design: RowSecurityDesign,
): Promise<ReadonlyMap<string, readonly InstalledPolicy[]>> {
  const rows = await tx.query(
    sql`select n.nspname || '.' || c.relname as relation, p.polname as name, p.polpermissive as permissive,
            p.polcmd in ('r', '*') and (0 = any (p.polroles) or exists (
              select from unnest(p.polroles) r where r <> 0 and pg_has_role(current_user, r, 'USAGE'))) as applies,
            obj_description(p.oid, 'pg_policy') as comment, ${DIGEST} as digest
       from pg_policy p join pg_class c on c.oid = p.polrelid join pg_namespace n on n.oid = c.relnamespace
      where n.nspname || '.' || c.relname = any ($1)`,
    [namesOf(design)],
  );
  const found = new Map<string, InstalledPolicy[]>();
  for (const row of rows) {
    const relation = String(row['relation']);
    const [comment = '', digest = ''] = splitLast(String(row['comment'] ?? ''));
    const policy: InstalledPolicy = {
      name: String(row['name']),
      permissive: row['permissive'] === true,
      applies: row['applies'] === true,
      comment: digest === row['digest'] ? comment : null,
    };
    found.set(relation, [...(found.get(relation) ?? []), policy]);
  }
  return found;
}

function splitLast(words: string): readonly string[] {
  const at = words.lastIndexOf(' ');
  return at < 0 ? [words] : [words.slice(0, at), words.slice(at + 1)];
}

function tableFaults(
  name: string,
  table: GuardedTable,
  relation: InstalledRelation | undefined,
  policies: readonly InstalledPolicy[],
  version: string,
): readonly string[] {
  if (relation === undefined) return [`there is no table ${name}`];
  if (relation.owned) return [`the governed role owns ${name}: its policies do not hold for it`];
  const more = relation.columns.filter((c) => !table.columns.includes(c));
  const less = table.columns.filter((c) => !relation.columns.includes(c));
  const columns = [
    ...more.map((c) => `${name}.${c} may be read, though no grant needs it`),
    ...less.map((c) => `${name}.${c} may not be read, though a grant needs it`),
  ];
  return relation.bears ? [...policyFaults(name, relation, policies, version), ...columns] : columns;
}

function policyFaults(
  name: string,
  { guarded }: InstalledRelation,
  policies: readonly InstalledPolicy[],
  version: string,
): readonly string[] {
  const rows = policies.find((p) => p.name === ROWS_POLICY);
  if (rows === undefined) return [`no policy of ours stands on ${name}`];
  if (!guarded) return [`row security of ${name} is switched off`];
  const ours = policies.filter((p) => p.name === ROWS_POLICY || p.name === OTHERS_POLICY);
  const altered = ours
    .filter((p) => p.comment === null)
    .map((p) => `policy ${p.name} of ${name} was altered`);
  if (altered.length > 0) return altered;
  if (ours.some((p) => p.comment !== `${COMMENT} ${version}`))
    return [`the policy on ${name} is of another version of policy.yaml`];
  // If our policy is permissive, other permissive policies add rows. If ours is restrictive, it removes such rows.
  const beside = policies.filter((p) => p.applies && p.permissive && !ours.includes(p));
  return rows.permissive
    ? beside.map((p) => `policy ${p.name} of ${name} shows the governed role more rows than ours does`)
    : [];
}

function closedFaults(relation: InstalledRelation | undefined): readonly string[] {
  const [column] = relation?.columns ?? [];
  return relation === undefined || column === undefined
    ? []
    : [`${relation.name}.${column} may be read, though no grant reaches the table`];
}

/** Reports roles that the governed role can switch to: our policies do not apply while it acts as another role. */
async function membershipFaults(tx: SystemQueries, design: RowSecurityDesign): Promise<readonly string[]> {
  const rows = await tx.query(
    sql`select distinct r.rolname as name
       from pg_roles r, pg_class c join pg_namespace n on n.oid = c.relnamespace
      where pg_has_role(current_user, r.oid, 'MEMBER') and r.rolname <> current_user
        and n.nspname || '.' || c.relname = any ($1) and c.relkind in ('r', 'p', 'v', 'm', 'f')
        and has_any_column_privilege(r.oid, c.oid, 'SELECT')
      order by 1`,
    [namesOf(design)],
  );
  return rows.map(
    ({ name }) => `the governed role can become "${String(name)}", which reads the same tables`,
  );
}

async function functionFaults(tx: SystemQueries): Promise<readonly string[]> {
  const rows = await tx.query(
    sql`select p.proname as name, p.prosrc as body, p.prosecdef as definer, p.proconfig::text as config,
            pg_has_role(current_user, p.proowner, 'USAGE') as owned
       from pg_proc p where p.pronamespace = to_regnamespace($1)`,
    [SCHEMA],
  );
  return FUNCTIONS.flatMap(({ name, body }): readonly string[] => {
    const found = rows.find((row) => row['name'] === name);
    if (found === undefined) return [`there is no function ${SCHEMA}.${name}`];
    const asMade =
      found['body'] === body &&
      found['definer'] === true &&
      found['owned'] === false &&
      found['config'] === '{"search_path=pg_catalog, pg_temp"}';
    return asMade ? [] : [`function ${SCHEMA}.${name} is not as it was made`];
  });
}

/** Checks that the database accepts rights signed by this process, with the same key and version. */
async function rightsFaults(
  tx: SystemQueries,
  { version }: RowSecurityDesign,
  key: Uint8Array,
): Promise<readonly string[]> {
  const nobody = { roles: [], denyingRoles: [], chain: [] };
  try {
    await tx.query(sql`select set_config(${sqlText(SETTING)}, $1, true)`, [
      signedRights(nobody, version, key, Date.now()),
    ]);
    await tx.query(sql`select ${sqlName(SCHEMA)}.granted('{}', '{}')`);
    return [];
  } catch (error) {
    if (error instanceof UpstreamFailure) return [error.message];
    throw error;
  }
}
