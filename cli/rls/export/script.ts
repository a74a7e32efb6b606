import { quoteLiteral } from 'osl-compiler';
import { identifier } from 'osl-compiler/sql-text';
import { counted, visible } from '../../output.js';
import { sourceText } from '../import/caller-value.js';
import { EXPORT_SCHEMA, type ReadingFunction } from './condition.js';
import type { ExportedRowSecurity, LeftPart, RoleOnTable, SecuredTable } from './design.js';

/** Prefix of policy names, which is followed by the number of the policy on its table. */
const POLICY = 'osl_export_';

/**
 * Writes a transaction that installs the exported row security and removes that of an earlier export. The transaction
 * fails if a role would see more of a table than the policy allows, for example through another policy or a privilege
 * of PUBLIC.
 */
export function exportScript(exported: ExportedRowSecurity): string {
  const { roles, tables, functions, calls } = exported;
  const callers = roles.filter((role) => functions.some(({ name }) => calls.get(role)?.has(name)));
  return statements([
    ...head(exported),
    'BEGIN',
    'SET LOCAL search_path = pg_catalog, pg_temp',
    'SET LOCAL standard_conforming_strings = on',
    clearing(),
    ...roles.map(createRole),
    ...(functions.length === 0
      ? []
      : [
          `CREATE SCHEMA ${EXPORT_SCHEMA}`,
          ...functions.flatMap(createFunction),
          ...callers.map((role) => `GRANT USAGE ON SCHEMA ${EXPORT_SCHEMA} TO ${identifier(role)}`),
          ...callers.flatMap((role) =>
            functions
              .filter(({ name }) => calls.get(role)?.has(name))
              .map((called) => `GRANT EXECUTE ON FUNCTION ${signature(called)} TO ${identifier(role)}`),
          ),
        ]),
    ...usage(exported).map((one) => `GRANT USAGE ON SCHEMA ${one.schema} TO ${one.role}`),
    ...tables.flatMap(tableStatements),
    check(exported),
    'COMMIT',
  ]);
}

/** Writes statements that remove an export but leave row security enabled: roles without a policy see nothing. */
export function dropScript({ connector, roles, tables }: ExportedRowSecurity): string {
  return statements([
    `-- Removes what \`osl rls export\` wrote for connector ${comment(connector)}. Row security stays enabled, so that no role sees\n-- more than before, and roles stay. Where nothing else needs them:`,
    ...tables.map((table) => comment(`--   ALTER TABLE ${tableName(table)} DISABLE ROW LEVEL SECURITY;`)),
    ...roles.map((role) => comment(`--   DROP OWNED BY ${identifier(role)}; DROP ROLE ${identifier(role)};`)),
    'BEGIN',
    clearing(),
    ...tables.flatMap((table) => table.roles.map((one) => revoke(table, one))),
    'COMMIT',
  ]);
}

function statements(parts: readonly string[]): string {
  return parts.map((part) => (part.startsWith('--') ? `${part}\n` : `${part};\n`)).join('');
}

function comment(text: string): string {
  return visible(text);
}

function head({ connector, version, attributes, left, tables }: ExportedRowSecurity): readonly string[] {
  const names = tables.flatMap(({ roles }) => roles.filter(({ apart }) => apart.length > 0));
  return [
    `-- Row security of connector ${comment(connector)}, written by \`osl rls export\` from policy ${version}. It needs no gateway.`,
    '-- Run it as the owner of the tables, in one piece. Owners, superusers and roles with BYPASSRLS are not subject to it.',
    '-- Other roles see no row of these tables until they have policies of their own.',
    ...(attributes.length === 0
      ? []
      : [
          '--',
          '-- Values of callers. Whoever may run SQL can set them: set them where callers cannot.',
          ...attributes.map((one) =>
            comment(`--   ${one.name}: ${sourceText(one.source)}${one.list ? ', a list' : ''}`),
          ),
        ]),
    ...(names.length === 0 ? [] : ['--', '-- Some logins must not have two of these roles: see below.']),
    ...(left.length === 0
      ? []
      : ['--', '-- Not expressed by row security:', ...left.map((one) => `--   ${leftText(one)}`)]),
    '',
  ].filter((line) => line !== '');
}

export function leftText({ object, role, reason }: LeftPart): string {
  return comment(`${object}${role === null ? '' : ` (${identifier(role)})`}: ${reason}`);
}

/** Writes a block that drops an earlier export; it fails if other objects use its parts or are in its schema. */
function clearing(): string {
  return block(`
DECLARE
  ours record;
BEGIN
  FOR ours IN SELECT polname, polrelid::regclass AS relation FROM pg_policy WHERE polname ~ '^${POLICY}[0-9]+$' LOOP
    EXECUTE format('DROP POLICY %I ON %s', ours.polname, ours.relation);
  END LOOP;
  FOR ours IN SELECT string_agg(oid::regprocedure::text, ', ') AS functions FROM pg_proc
               WHERE pronamespace = to_regnamespace('${EXPORT_SCHEMA}') HAVING count(*) > 0 LOOP
    EXECUTE 'DROP FUNCTION ' || ours.functions;
  END LOOP;
  DROP SCHEMA IF EXISTS ${EXPORT_SCHEMA};
END`);
}

function createRole(role: string): string {
  return block(`
BEGIN
  IF to_regrole(${quoteLiteral(identifier(role))}) IS NULL THEN CREATE ROLE ${identifier(role)} NOLOGIN; END IF;
END`);
}

/** BEGIN ATOMIC parses the body now, so that no setting of a caller changes its meaning. */
function createFunction(made: ReadingFunction): readonly string[] {
  return [
    `CREATE FUNCTION ${signature(made)} RETURNS ${made.returns} LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp SET row_security = off
  BEGIN ATOMIC ${made.body}; END`,
    `REVOKE ALL ON FUNCTION ${signature(made)} FROM PUBLIC`,
  ];
}

function signature({ name }: ReadingFunction): string {
  return `${EXPORT_SCHEMA}.${identifier(name)}()`;
}

function usage({
  tables,
}: ExportedRowSecurity): readonly { readonly schema: string; readonly role: string }[] {
  const all = tables.flatMap(({ schema, roles }) =>
    roles
      .filter(({ columns }) => columns.length > 0)
      .map(({ role }) => ({ schema: identifier(schema), role: identifier(role) })),
  );
  return [...new Map(all.map((one) => [JSON.stringify(one), one])).values()];
}

function tableName({ schema, table }: Pick<SecuredTable, 'schema' | 'table'>): string {
  return `${identifier(schema)}.${identifier(table)}`;
}

function tableStatements(secured: SecuredTable): readonly string[] {
  const name = tableName(secured);
  const policies = secured.roles.flatMap(policiesOf);
  return [
    `-- ${comment(name)}: ${counted(policies.length, 'policy', 'policies')}`,
    `ALTER TABLE ${name} ENABLE ROW LEVEL SECURITY`,
    ...secured.roles.map((one) => revoke(secured, one)),
    ...secured.roles
      .filter(({ columns }) => columns.length > 0)
      .map(
        ({ role, columns }) =>
          `GRANT SELECT (${columns.map(identifier).join(', ')}) ON ${name} TO ${identifier(role)}`,
      ),
    ...policies.map(
      ({ role, kind, using }, i) =>
        `CREATE POLICY ${POLICY}${String(i + 1).padStart(3, '0')} ON ${name} AS ${kind} FOR SELECT TO ${identifier(role)}\n  USING (${using})`,
    ),
  ];
}

function revoke(secured: SecuredTable, { role }: RoleOnTable): string {
  return `REVOKE SELECT ON ${tableName(secured)} FROM ${identifier(role)}`;
}

interface WrittenPolicy {
  readonly role: string;
  readonly kind: 'PERMISSIVE' | 'RESTRICTIVE';
  readonly using: string;
}

function policiesOf({ role, rows, denied, apart }: RoleOnTable): readonly WrittenPolicy[] {
  return [
    ...rows.map((using) => ({ role, kind: 'PERMISSIVE' as const, using })),
    ...(denied ? [{ role, kind: 'RESTRICTIVE' as const, using: 'false' }] : []),
    ...apart.map((other) => ({
      role,
      kind: 'RESTRICTIVE' as const,
      using: `(select not pg_has_role(current_user, ${quoteLiteral(other)}, 'USAGE'))`,
    })),
  ];
}

/** Writes a block that fails if a role has more rights than granted here, or is exempt from row security. */
function check({ roles, tables, closed }: ExportedRowSecurity): string {
  const all = [...tables, ...closed.map((table) => ({ ...table, roles: [] }))];
  const rights = all.flatMap((table: SecuredTable) =>
    roles.map((role) => {
      const columns = table.roles.find((one) => one.role === role)?.columns ?? [];
      const names = `array[${columns.map(quoteLiteral).join(', ')}]::name[]`;
      return `(${quoteLiteral(role)}::name, to_regclass(${quoteLiteral(tableName(table))}), ${names})`;
    }),
  );
  if (rights.length === 0) return 'SELECT 1';
  return block(`
DECLARE
  fault text;
BEGIN
  WITH expected (role, relation, columns) AS (VALUES
    ${rights.join(',\n    ')}
  )
  SELECT string_agg(DISTINCT why, '; ') INTO fault FROM (
    SELECT format('%I may read column %I of %s, by another privilege', role, attname, relation)
      FROM expected JOIN pg_attribute ON attrelid = relation AND attnum > 0 AND NOT attisdropped
     WHERE has_column_privilege(role, relation, attnum, 'SELECT') AND NOT attname = ANY (columns)
    UNION ALL
    SELECT format('%I sees rows of %s by policy %I', role, relation, polname)
      FROM expected JOIN pg_policy ON polrelid = relation AND polpermissive AND polcmd IN ('*', 'r')
     WHERE EXISTS (SELECT FROM unnest(polroles) AS p (id)
                    WHERE CASE WHEN p.id = 0 THEN true ELSE pg_has_role(role, p.id, 'USAGE') END)
       AND NOT (polname ~ '^${POLICY}[0-9]+$' AND polroles = array(SELECT r.oid FROM pg_roles AS r WHERE r.rolname = role))
    UNION ALL
    SELECT format('%I is not subject to the row security of %s', role, relation)
      FROM expected JOIN pg_class ON pg_class.oid = relation
     WHERE pg_has_role(role, relowner, 'MEMBER')
        OR EXISTS (SELECT FROM pg_roles AS r WHERE (r.rolsuper OR r.rolbypassrls) AND pg_has_role(role, r.oid, 'MEMBER'))
  ) AS faults (why);
  IF fault IS NOT NULL THEN RAISE EXCEPTION USING MESSAGE = 'row security was not written: ' || fault; END IF;
END`);
}

/** Wraps a body in a DO statement, with a dollar quote that does not occur in the body. */
function block(body: string): string {
  let tag = '$osl$';
  for (let n = 1; body.includes(tag); n++) tag = `$osl${n}$`;
  return `DO ${tag}${body}\n${tag}`;
}
