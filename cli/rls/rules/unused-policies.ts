import { identifier } from 'osl-compiler/sql-text';
import { type Policy, PUBLIC, policyObject, qualified } from '../catalog/catalog.js';
import type { AnalysedPolicy, CheckedDatabase } from '../database.js';
import { type RlsRule, violation } from '../finding.js';

/** Rules about policies without effect. */
export const UNUSED_POLICIES: readonly RlsRule[] = [
  {
    code: 'RLS042',
    severity: 'note',
    title: 'policy for roles without a privilege on the table',
    consequence: 'The policy is never applied, because the command is refused before.',
    mend: 'grant the privilege, or drop the policy',
    check: (db) =>
      db.policies
        .filter((analysed) => !analysed.policy.roles.includes(PUBLIC) && !isUsable(db, analysed))
        .map(({ table, policy }) => violation(policyObject(table, policy))),
  },
  {
    code: 'RLS043',
    severity: 'note',
    title: 'policy that another one repeats',
    consequence: 'Dropping one of them changes nothing, which whoever drops it may not expect.',
    mend: 'drop one of them',
    check: (db) =>
      db.policies.flatMap(({ table, policy }) => {
        const same = table.policies.find(
          (other) => other !== policy && contentOf(other) === contentOf(policy),
        );
        if (same === undefined || same.name > policy.name) return [];
        const sql = [`DROP POLICY ${identifier(policy.name)} ON ${qualified(table)};`];
        return [violation(policyObject(table, policy), `as ${identifier(same.name)}`, sql)];
      }),
  },
];

/** True if a role to which the policy applies may run a command of the policy. */
function isUsable({ catalog, access }: CheckedDatabase, { table, policy }: AnalysedPolicy): boolean {
  const commands = policy.command === 'ALL' ? ['SELECT', 'INSERT', 'UPDATE', 'DELETE'] : [policy.command];
  return [...catalog.roles.values()].some(
    ({ id }) =>
      policy.roles.some((role) => access.privilegesOf(id).has(role)) &&
      commands.some(
        (command) => access.holds(id, command, table) || access.columns(id, command, table).length > 0,
      ),
  );
}

/** Returns the content of a policy, without its name, as a text for comparing policies. */
export function contentOf({ permissive, command, roles, using, check }: Policy): string {
  return JSON.stringify([permissive, command, [...roles].sort(), using, check]);
}
