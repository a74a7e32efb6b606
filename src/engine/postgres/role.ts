import type { SetupQuery } from './connect.js';
import { type ForeignTables, surveyForeign } from './foreign-servers.js';
import { kindWarnings, type ServerKind, serverKind } from './server-kind.js';

export interface RoleReport {
  readonly role: string;
  /** The reason why governed statements must not run as this role; null if they may. */
  readonly fault: string | null;
  readonly serverVersion: string;
  readonly kind: ServerKind;
  readonly foreign: ForeignTables;
  readonly warnings: readonly string[];
}

/** Predefined roles with access to files or programs of the server. */
const DANGEROUS = ['pg_read_server_files', 'pg_write_server_files', 'pg_execute_server_program'];

const REACHABLE = `
  select r.rolname as name, r.rolsuper as super, r.rolbypassrls as bypass, r.rolreplication as replication
    from pg_catalog.pg_roles r
   where pg_catalog.pg_has_role(current_user, r.oid, 'MEMBER')
   order by r.rolname <> current_user, not r.rolsuper, r.rolname`;

const CREATABLE = `
  select n.nspname as name from pg_catalog.pg_namespace n
   where pg_catalog.has_schema_privilege(current_user, n.oid, 'CREATE') and n.nspname !~ '^pg_(toast_)?temp_'
   order by 1 limit 5`;

const OWNED = `
  select c.oid::pg_catalog.regclass::text as name from pg_catalog.pg_class c
   where pg_catalog.pg_has_role(current_user, c.relowner, 'USAGE') and c.relkind in ('r', 'p', 'v', 'm', 'f')
   order by 1 limit 5`;

/**
 * Inspects the role that governed statements run as. The role is unfit if it, or a role that it is a member of, is a
 * superuser, has BYPASSRLS or REPLICATION, or can access files or programs of the server.
 */
export async function examineRole(query: SetupQuery): Promise<RoleReport> {
  const [self] = await query(
    `select current_user::text as name, current_setting('server_version') as version,
            (select extversion from pg_catalog.pg_extension where extname = 'vector') as vector,
            pg_catalog.version() as said,
            exists (select from pg_catalog.pg_extension where extname = 'citus') as citus,
            exists (select from pg_catalog.pg_proc where proname = 'aurora_version') as aurora`,
  );
  const role = String(self?.['name']);
  const kind = serverKind({
    version: String(self?.['said']),
    citus: self?.['citus'] === true,
    aurora: self?.['aurora'] === true,
  });
  const reachable = await query(REACHABLE);
  const foreign = await surveyForeign(query);
  return {
    role,
    fault: reachable.map(faultOf).find((fault) => fault !== null) ?? null,
    serverVersion: String(self?.['version']).split(' ')[0] ?? '',
    kind,
    foreign,
    warnings: [
      ...listWarning(`role "${role}" can create objects in schema`, await query(CREATABLE)),
      ...listWarning(`role "${role}" owns relation`, await query(OWNED)),
      ...vectorWarning(self?.['vector']),
      ...foreign.warnings,
      ...kindWarnings(kind),
    ],
  };
}

/** Like `examineRole`, but throws an Error if the role is unfit. */
export async function inspectRole(query: SetupQuery): Promise<RoleReport> {
  const report = await examineRole(query);
  if (report.fault === null) return report;
  throw new Error(`the governed role "${report.role}" is refused: role ${report.fault}`);
}

/** Returns a role and its dangerous right, such as `"postgres" is superuser`; null if it has no such right. */
function faultOf(row: Record<string, unknown>): string | null {
  const right = rightOf(row);
  return right === null ? null : `"${String(row['name'])}" ${right}`;
}

function rightOf(row: Record<string, unknown>): string | null {
  if (row['super'] === true) return 'is superuser';
  if (row['bypass'] === true) return 'has BYPASSRLS';
  if (row['replication'] === true) return 'has REPLICATION';
  if (DANGEROUS.includes(String(row['name']))) return 'reaches files or programs of the server';
  return null;
}

function listWarning(prefix: string, rows: readonly Record<string, unknown>[]): string[] {
  return rows.map((row) => `${prefix} "${String(row['name'])}"`);
}

/** Warns about pgvector below 0.8.4, which has CVE-2026-3172. */
function vectorWarning(version: unknown): string[] {
  if (typeof version !== 'string') return [];
  const [major = 0, minor = 0, patch = 0] = version.split('.').map(Number);
  const isOld = major === 0 && (minor < 8 || (minor === 8 && patch < 4));
  return isOld ? [`extension vector ${version} is older than 0.8.4 (CVE-2026-3172)`] : [];
}
