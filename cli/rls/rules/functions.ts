import { identifier } from 'osl-compiler/sql-text';
import {
  type DatabaseFunction,
  functionObject,
  type PgRelation,
  PUBLIC,
  policyObject,
  qualified,
  roleNames,
  schemasOf,
  signature,
} from '../catalog/catalog.js';
import { type AnalysedPolicy, type CheckedDatabase, listed } from '../database.js';
import type { SettingRead } from '../expression.js';
import { policiesWith, type RlsRule, violation } from '../finding.js';
import { settingsOfFunction } from '../statement.js';
import { exposedBy } from './views.js';

/** Rules about conditions that depend on settings of the session or claims of a token. */
export const SETTINGS: readonly RlsRule[] = [
  {
    code: 'RLS032',
    severity: 'note',
    title: 'current_setting without missing_ok',
    consequence: 'Each query on the table fails with 42704 in a session that has not set the setting.',
    mend: "write current_setting('…', true), which is NULL if the setting is not set, and then shows no row",
    check: (db) =>
      policiesWith(db, 'setting ', (p) => customSettings(p).flatMap((s) => (s.missingOk ? [] : s.name))),
  },
  {
    code: 'RLS033',
    severity: 'note',
    title: 'setting cast to another type without NULLIF',
    consequence:
      "The setting is '' after a transaction that used SET LOCAL, and the cast of '' fails with 22P02.",
    mend: "write NULLIF(current_setting('…', true), '')::type",
    check: (db) =>
      policiesWith(db, 'setting ', (p) => customSettings(p).flatMap((s) => (s.cast === null ? [] : s.name))),
  },
  {
    code: 'RLS034',
    severity: 'note',
    title: 'condition that depends on a setting of the session',
    consequence:
      'Whoever can run SQL of their own as the role sets it to any value, and sees the rows of anybody.',
    mend: 'let only trusted code run SQL as the role, or derive the rows from current_user or a signed value',
    check: (db) =>
      policiesWith(db, 'setting ', (analysed) => [
        ...customSettings(analysed).map(({ name }) => name),
        ...db.functionsOf(analysed).flatMap(settingsOfFunction).filter(isCustom),
      ]),
  },
  {
    code: 'RLS038',
    severity: 'error',
    title: 'condition on user_metadata of a token',
    consequence:
      'Users of Supabase Auth can change their own user_metadata, and with it which rows they see.',
    mend: 'use app_metadata, which only the server can change',
    check: (db) =>
      db.policies
        .filter((analysed) => {
          const literals = analysed.parsed.flatMap((e) => e.literals);
          return [...literals, ...db.functionsOf(analysed).map(({ body }) => body)].some(isUserMetadata);
        })
        .map(({ table, policy }) => violation(policyObject(table, policy))),
  },
];

function isUserMetadata(text: string): boolean {
  return /\b(user_metadata|raw_user_meta_data)\b/.test(text);
}

/** Settings that a policy's conditions read, except those of Postgres itself. */
function customSettings({ parsed }: AnalysedPolicy): readonly SettingRead[] {
  return parsed.flatMap(({ settings }) => settings).filter(({ name }) => isCustom(name));
}

function isCustom(setting: string): boolean {
  return setting.includes('.');
}

/** Rules about functions in policies and SECURITY DEFINER functions, which run as their owner. */
export const FUNCTIONS: readonly RlsRule[] = [
  {
    code: 'RLS014',
    severity: 'warning',
    title: 'LEAKPROOF function in a language that anybody can write',
    consequence: 'It may see rows before the policy removes them, and an error or a notice of it shows them.',
    mend: 'take LEAKPROOF away',
    check: (db) =>
      db.functions
        .filter(({ leakproof, language }) => leakproof && language !== 'c' && language !== 'internal')
        .map((called) =>
          violation(functionObject(called), `language ${called.language}`, [
            `ALTER ROUTINE ${signature(called)} NOT LEAKPROOF;`,
          ]),
        ),
  },
  {
    code: 'RLS015',
    severity: 'warning',
    title: 'policy that calls a VOLATILE function',
    consequence:
      'The function runs for each row and no index is used for it, unless it is SQL that Postgres can inline.',
    mend: 'declare the function STABLE if it writes nothing and its value holds for a statement',
    check: (db) =>
      db.policies.flatMap((analysed) => {
        const { table, policy, parsed } = analysed;
        const calls = parsed.flatMap((e) => e.calls.filter((call) => call.perRow));
        const isCalled = (f: DatabaseFunction): boolean =>
          calls.some(({ schema, name }) => f.schema === schema && f.name === name);
        const own = db.functionsOf(analysed).filter((f) => f.volatility === 'volatile' && isCalled(f));
        const system = calls.filter(
          ({ schema, name }) => schema === null && db.catalog.systemFunctions.get(name) === 'volatile',
        );
        const names = [...new Set([...own.map(signature), ...system.map(({ name }) => `${name}()`)])];
        if (names.length === 0) return [];
        const sql = own.map((called) => `ALTER ROUTINE ${signature(called)} STABLE;`);
        return [violation(policyObject(table, policy), `calls ${listed(names)}`, sql)];
      }),
  },
  {
    code: 'RLS023',
    severity: 'warning',
    title: 'SECURITY DEFINER function without its own search_path',
    consequence:
      'The caller chooses which tables and functions the unqualified names in it mean, and they run with the rights of the owner.',
    mend: 'set search_path to the schemas that it needs, pg_temp last',
    check: (db) =>
      definers(db)
        .filter(({ searchPath, bound }) => searchPath === null && !bound)
        .map((called) => violation(functionObject(called), null, [fixPath(called)])),
  },
  {
    code: 'RLS049',
    severity: 'warning',
    title: 'SECURITY DEFINER function whose search_path does not end with pg_temp',
    consequence:
      "A caller's temporary table takes the place of a table that the function names without its schema.",
    mend: 'add pg_temp at the end of search_path, or leave search_path empty and qualify every name',
    check: (db) =>
      definers(db)
        .filter(({ searchPath, bound }) => {
          const schemas = schemasOf(searchPath ?? '');
          return schemas.length > 0 && schemas.at(-1) !== 'pg_temp' && !bound;
        })
        .map((called) =>
          violation(functionObject(called), `search_path = ${called.searchPath}`, [fixPath(called)]),
        ),
  },
  {
    code: 'RLS024',
    severity: 'warning',
    title: 'SECURITY DEFINER function that reads a protected table, for everybody',
    consequence:
      'Every role can call it, and in it row security does not apply, because it does not apply to the owner.',
    mend: 'revoke EXECUTE from PUBLIC and grant it to the roles that need it',
    check: (db) =>
      definers(db).flatMap((called) => {
        const isForAll = called.grants.some((g) => g.grantee === PUBLIC && g.privilege === 'EXECUTE');
        const read = db
          .readsOf(called)
          .flatMap((relation) =>
            relation.kind === 'view'
              ? exposedBy(db, relation)
              : isExempt(db, called, relation)
                ? relation
                : [],
          );
        if (!isForAll || read.length === 0) return [];
        const sql = [`REVOKE EXECUTE ON ROUTINE ${signature(called)} FROM PUBLIC;`];
        return [violation(functionObject(called), `reads ${listed(read.map(qualified))}`, sql)];
      }),
  },
  {
    code: 'RLS055',
    severity: 'warning',
    title: 'policy that calls a function its roles may not execute',
    consequence: 'Each query of the role on the table fails with 42501.',
    mend: 'grant EXECUTE on the function to the role',
    check: (db) =>
      db.policies.flatMap((analysed) => {
        const denied = db.functionsOf(analysed).flatMap((called) => {
          const roles = db.affectedRoles(analysed).filter((role) => !db.access.mayExecute(role.id, called));
          return roles.length === 0 ? [] : [{ called, roles }];
        });
        if (denied.length === 0) return [];
        const sql = denied.map(({ called, roles }) => {
          return `GRANT EXECUTE ON ROUTINE ${signature(called)} TO ${roleNames(roles).join(', ')};`;
        });
        const detail = denied
          .map(({ called, roles }) => `${signature(called)}: ${roleNames(roles).join(', ')}`)
          .join('; ');
        return [violation(policyObject(analysed.table, analysed.policy), detail, sql)];
      }),
  },
];

/** SECURITY DEFINER functions that roles other than the owner may call directly, so no trigger functions. */
function definers(db: CheckedDatabase): readonly DatabaseFunction[] {
  return db.functions.filter(
    (called) => called.securityDefiner && !called.returnsTrigger && isCallableByOthers(db, called),
  );
}

function isCallableByOthers(db: CheckedDatabase, called: DatabaseFunction): boolean {
  if (called.grants.some((g) => g.grantee === PUBLIC)) return true;
  return db.roles.some(
    (role) => !db.access.privilegesOf(role.id).has(called.owner) && db.access.mayExecute(role.id, called),
  );
}

function isExempt(db: CheckedDatabase, called: DatabaseFunction, table: PgRelation): boolean {
  return table.rowSecurity !== 'off' && db.access.exemption(called.owner, table) !== null;
}

function fixPath(called: DatabaseFunction): string {
  const path = schemasOf(called.searchPath ?? '').filter((name) => name !== 'pg_temp');
  const schemas = path.length > 0 ? path : [called.schema];
  return `ALTER ROUTINE ${signature(called)} SET search_path = ${[...schemas.map(identifier), 'pg_temp'].join(', ')};`;
}
