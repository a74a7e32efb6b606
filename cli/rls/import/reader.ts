import { identifier } from 'osl-compiler/sql-text';
import { type Policy, PUBLIC, type Relation, type SecurityCatalog } from '../catalog/catalog.js';
import { governs } from '../checked-database.js';
import { qualified } from '../identity.js';

const HEAD = `-- The database role of the gateway: it may read the imported tables and views and nothing else, and it sees all of
-- their rows, since the gateway decides who sees which. Run this as the owner of them; choose the password first.`;

const RESTRICTIVE = `
-- These restrictive policies are for everybody, so also for the role of the gateway, which has none of the settings that
-- they read. They are limited to the roles that exist now: name further roles in them when you create some.`;

/** Statements that create the role with which the gateway reads `relations`. */
export function readerScript(role: string, relations: readonly Relation[], catalog: SecurityCatalog): string {
  const name = identifier(role);
  const schemas = [...new Set(relations.map((relation) => relation.schema))];
  const secured = relations.filter((relation) => relation.rowSecurity !== 'off');
  const limits = secured.flatMap((relation) =>
    relation.policies.filter(isForEverybody).map((policy) => ({ relation, policy })),
  );
  const others = [...catalog.roles.values()]
    .filter((one) => !one.superuser && !one.name.startsWith('pg_') && one.name !== role)
    .map((one) => identifier(one.name));
  return [
    HEAD,
    `CREATE ROLE ${name} LOGIN PASSWORD 'choose one';`,
    ...schemas.map((schema) => `GRANT USAGE ON SCHEMA ${identifier(schema)} TO ${name};`),
    ...relations.map((relation) => `GRANT SELECT ON ${qualified(relation)} TO ${name};`),
    ...secured.map(
      (relation) => `CREATE POLICY ${POLICY} ON ${qualified(relation)} FOR SELECT TO ${name} USING (true);`,
    ),
    ...(limits.length === 0 ? [] : [RESTRICTIVE]),
    ...limits.map(
      ({ relation, policy }) =>
        `ALTER POLICY ${identifier(policy.name)} ON ${qualified(relation)} TO ${others.join(', ')};`,
    ),
    '',
  ].join('\n');
}

const POLICY = 'osl_gateway';

/** True for a restrictive policy that every role is subject to. */
function isForEverybody(policy: Policy): boolean {
  return !policy.permissive && governs(policy, 'SELECT') && policy.roles.includes(PUBLIC);
}
