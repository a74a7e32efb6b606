import { identifier } from 'osl-compiler/sql-text';
import { type Policy, PUBLIC, policyObject, qualified, roleNames } from '../catalog/catalog.js';
import { type AnalysedPolicy, type CheckedDatabase, governs, listed } from '../database.js';
import { type Alternative, type Expression, isAlwaysTrue } from '../expression.js';
import { policiesWith, type RlsRule, violation } from '../finding.js';

/** Rules about policies that let more rows through than they seem to. */
export const OPEN_CONDITIONS: readonly RlsRule[] = [
  {
    code: 'RLS007',
    severity: 'warning',
    title: 'permissive policy that is true for every row',
    consequence: 'Its roles see, or with its command change or delete, all rows of the table.',
    mend: 'write the condition, or disable row security if the table is for everyone',
    check: (db) =>
      db.policies
        .filter(({ policy, using }) => policy.permissive && isAlwaysTrue(using))
        .filter((p) => !isNarrowed(db, p, ({ using }) => using))
        .map((p) => openPolicy(db, p)),
  },
  {
    code: 'RLS008',
    severity: 'note',
    title: 'policy for PUBLIC',
    consequence: 'It applies to every role, those of the future included.',
    mend: 'name the roles in TO',
    check: (db) =>
      db.policies
        .filter(({ policy }) => policy.permissive && policy.roles.includes(PUBLIC))
        .map((analysed) => {
          const { table, policy } = analysed;
          const roles = roleNames(db.affectedRoles(analysed)).join(', ');
          const sql = [`ALTER POLICY ${identifier(policy.name)} ON ${qualified(table)} TO ${roles};`];
          return violation(policyObject(table, policy), null, roles === '' ? [] : sql);
        }),
  },
  {
    code: 'RLS009',
    severity: 'warning',
    title: 'policy without effect beside one that is always true',
    consequence: 'Permissive policies are combined by OR, so this one restricts nothing.',
    mend: 'drop the policy that is always true, or make this one restrictive',
    check: (db) =>
      db.policies.flatMap((narrow) => {
        if (!narrow.policy.permissive || isAlwaysTrue(narrow.using) || narrow.using === null) return [];
        const open = db
          .policiesOf(narrow.table)
          .find(
            (wide) =>
              wide.policy.permissive && isAlwaysTrue(wide.using) && covers(db, wide.policy, narrow.policy),
          );
        if (open === undefined) return [];
        const detail = `beside ${identifier(open.policy.name)}`;
        return [violation(policyObject(narrow.table, narrow.policy), detail)];
      }),
  },
  {
    code: 'RLS012',
    severity: 'error',
    title: 'UPDATE policy whose WITH CHECK is always true',
    consequence: 'A role can change a row that it sees into one of somebody else.',
    mend: 'drop WITH CHECK (true), so that USING counts for the new row, too, or repeat the condition',
    check: (db) =>
      db.policies
        .filter(({ policy }) => policy.permissive && governs(policy, 'UPDATE'))
        // Without USING, no row can be updated.
        .filter(({ using, check }) => using !== null && isAlwaysTrue(check) && !isAlwaysTrue(using))
        .filter((p) => !isNarrowed(db, p, newRowCondition))
        .map((p) => ({ ...openPolicy(db, p), sql: [alterCheck(p)] })),
  },
  {
    code: 'RLS013',
    severity: 'warning',
    title: 'INSERT policy that is true for every row',
    consequence: 'Its roles can insert rows that belong to somebody else.',
    mend: 'write the condition of the new row in WITH CHECK',
    check: (db) =>
      db.policies
        .filter(({ policy }) => policy.permissive && governs(policy, 'INSERT'))
        .filter(({ using, check }) => using === null && isAlwaysTrue(check))
        .filter((p) => !isNarrowed(db, p, newRowCondition))
        .map((p) => openPolicy(db, p)),
  },
  {
    code: 'RLS060',
    severity: 'note',
    title: 'INSERT policy without WITH CHECK',
    consequence: 'The policy lets no row be inserted.',
    mend: 'write the condition of the new row in WITH CHECK',
    check: (db) =>
      db.policies
        .filter(({ policy }) => policy.permissive && policy.command === 'INSERT' && policy.check === null)
        .map((p) => openPolicy(db, p)),
  },
  {
    code: 'RLS044',
    severity: 'warning',
    title: 'condition that lets NULL through',
    consequence: 'Rows whose column is NULL are shown to every role of the policy.',
    mend: 'declare the column NOT NULL and drop the alternative, or write a policy of its own for shared rows',
    check: (db) =>
      policiesWith(db, 'column ', ({ table, policy, parsed }) => {
        const alternatives = parsed
          .flatMap(({ conjuncts }) => conjuncts)
          .filter((conjunct) => conjunct.alternatives.length > 1)
          .flatMap((conjunct) => conjunct.alternatives);
        const nullable = table.columns.filter(({ required }) => !required).map(({ name }) => name);
        return nullable.filter((column) => {
          const isTest = ({ comparison }: Alternative): boolean =>
            comparison?.operator === 'IS NULL' && comparison.column === column;
          const others = alternatives.filter((one) => !isTest(one) && one.columns.has(column));
          return policy.permissive && alternatives.some(isTest) && others.length > 0;
        });
      }),
  },
  {
    code: 'RLS048',
    severity: 'warning',
    title: 'condition that names no column',
    consequence: 'A session that meets the condition sees all rows of the table.',
    mend: 'compare a column of the row, or ignore the rule if the condition is about the session on purpose',
    check: (db) =>
      db.policies
        .filter(({ policy, using }) => {
          if (!policy.permissive || using?.kind !== 'parsed') return false;
          return using.constant === null && using.columns.size === 0;
        })
        .filter((p) => !isNarrowed(db, p, ({ using }) => using))
        .map((p) => openPolicy(db, p)),
  },
];

/** True if `wide` applies to every role and command to which `narrow` applies. */
function covers({ access }: CheckedDatabase, wide: Policy, narrow: Policy): boolean {
  if (wide.command !== 'ALL' && wide.command !== narrow.command) return false;
  return (
    wide.roles.includes(PUBLIC) ||
    narrow.roles.every((role) => wide.roles.some((id) => access.privilegesOf(role).has(id)))
  );
}

/**
 * True if a restrictive policy narrows what an open policy lets through, for each of its roles and commands.
 *
 * @param conditionOf the condition of the restrictive policy for the rows in question
 */
function isNarrowed(
  db: CheckedDatabase,
  { table, policy }: AnalysedPolicy,
  conditionOf: (restrictive: AnalysedPolicy) => Expression | null,
): boolean {
  return db
    .policiesOf(table)
    .some(
      (other) =>
        !other.policy.permissive && covers(db, other.policy, policy) && selectsRows(conditionOf(other)),
    );
}

/** The condition that a new row must meet: WITH CHECK, or USING in its absence. */
export function newRowCondition({ using, check }: AnalysedPolicy): Expression | null {
  return check ?? using;
}

/** True if a condition depends on the row, or is true for none. */
export function selectsRows(condition: Expression | null): boolean {
  if (condition?.kind !== 'parsed') return condition !== null;
  return condition.constant === null ? condition.columns.size > 0 : !condition.constant;
}

function openPolicy(db: CheckedDatabase, { table, policy }: AnalysedPolicy) {
  const roles = listed(policy.roles.map(db.roleName));
  return violation(policyObject(table, policy), `${policy.command} for ${roles}`);
}

function alterCheck({ table, policy }: AnalysedPolicy): string {
  return `ALTER POLICY ${identifier(policy.name)} ON ${qualified(table)} WITH CHECK (${policy.using});`;
}
