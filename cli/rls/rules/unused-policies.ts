import { identifier } from 'osl-compiler/sql-text';
import { type Policy, PUBLIC, policyObject, qualified } from '../catalog/catalog.js';
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
        .filter(({ policy }) => !policy.roles.includes(PUBLIC))
        .filter((analysed) => ![...db.catalog.roles.values()].some((role) => db.mayUse(analysed, role)))
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

/** Returns the content of a policy, without its name, as a text for comparing policies. */
export function contentOf({ permissive, command, roles, using, check }: Policy): string {
  return JSON.stringify([permissive, command, [...roles].sort(), using, check]);
}
