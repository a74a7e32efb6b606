import type { Oid, PgRelation, Role } from '../catalog/catalog.js';
import { policyObject, qualified, roleNames } from '../catalog/catalog.js';
import { type AnalysedPolicy, type CheckedDatabase, governs, listed } from '../database.js';
import { isAlwaysTrue } from '../expression.js';
import { policiesWith, type RlsRule, type Violation, violation } from '../finding.js';
import { newRowCondition, selectsRows } from './open-conditions.js';
import { tablesBehind } from './views.js';

/** Rules about policies whose conditions read other tables. */
export const DEPENDENCIES: readonly RlsRule[] = [
  {
    code: 'RLS019',
    severity: 'error',
    title: 'policy that reads its own table',
    consequence:
      'Each command that the policy is for fails, for roles that row security applies to: infinite recursion (42P17), or a stack that is too deep.',
    mend: 'read the table in a SECURITY DEFINER function of its owner, or a table without such a policy',
    check: (db) =>
      db.policies.flatMap((analysed) => {
        const { table, policy } = analysed;
        const through = recursionsOf(db, analysed);
        if (through.length === 0) return [];
        const others = through.filter((read) => read !== table);
        const detail = others.length === 0 ? null : `through ${listed(others.map(qualified))}`;
        return [violation(policyObject(table, policy), detail)];
      }),
  },
  {
    code: 'RLS020',
    severity: 'note',
    title: 'policy that reads another protected table',
    consequence:
      'The policies of that table apply in the condition, too, so that it sees only some of its rows.',
    mend: 'make sure that its policies show these rows, or read it in a SECURITY DEFINER function',
    check: (db) =>
      policiesWith(db, 'reads ', (analysed) =>
        subqueryTables(db, analysed)
          .filter((table) => table.rowSecurity !== 'off' && table.id !== analysed.table.id)
          .map(qualified),
      ),
  },
  {
    code: 'RLS056',
    severity: 'warning',
    title: 'policy that reads a table its roles may not read',
    consequence: 'Each query of the role on the table of the policy fails with 42501.',
    mend: 'grant SELECT on the columns that the condition reads, or read them in a SECURITY DEFINER function',
    check: (db) =>
      rolesByTable(db, subqueryTables, (role, read) => !db.access.holdsAny(role.id, 'SELECT', read)),
  },
  {
    code: 'RLS057',
    severity: 'error',
    title: 'role that can write the table which decides its rows',
    consequence:
      'The role inserts or changes a row there, such as a membership of its own, and then sees more rows.',
    mend: 'revoke INSERT and UPDATE on that table, or enable row security on it',
    check: (db) => rolesByTable(db, allReads, (role, read) => canWriteAny(db, role, read)),
  },
];

/** Reports policies that read a table for which roles of the policy have a fault, with these roles. */
function rolesByTable(
  db: CheckedDatabase,
  tablesOf: (db: CheckedDatabase, analysed: AnalysedPolicy) => readonly PgRelation[],
  hasFault: (role: Role, table: PgRelation) => boolean,
): readonly Violation[] {
  return db.policies.flatMap((analysed) => {
    const found = tablesOf(db, analysed).flatMap((table) => {
      const roles = db.affectedRoles(analysed).filter((role) => hasFault(role, table));
      return roles.length === 0 ? [] : [`${qualified(table)}: ${listed(roleNames(roles))}`];
    });
    if (found.length === 0) return [];
    return [violation(policyObject(analysed.table, analysed.policy), found.join('; '))];
  });
}

/** Relations in the subqueries of a policy's conditions. */
function subqueryTables(db: CheckedDatabase, { parsed }: AnalysedPolicy): readonly PgRelation[] {
  const named = parsed.flatMap((e) => e.subqueries.flatMap(({ relations }) => relations));
  return [...new Set(named.flatMap((name) => db.relationNamed(name) ?? []))];
}

/** Tables that a policy reads, also through views and functions, except its own table. */
function allReads(db: CheckedDatabase, analysed: AnalysedPolicy): readonly PgRelation[] {
  const named = [...subqueryTables(db, analysed), ...db.functionsOf(analysed).flatMap(db.readsOf)];
  const read = new Set(named.flatMap((relation) => tablesBehind(db, relation)));
  return [...read].filter((relation) => relation.id !== analysed.table.id && relation.kind.includes('table'));
}

/** A relation that is read, and the role whose policies apply to it. */
interface RelationRead {
  readonly relation: PgRelation;
  readonly role: Oid;
}

/**
 * Relations in the condition of a policy that lead back to its own table, so that the condition is evaluated within
 * itself. For a policy of SELECT that is any read whose policies apply; in a policy of another command, Postgres refuses
 * the table in a subquery if the SELECT policies of the table have a subquery, too.
 */
function recursionsOf(db: CheckedDatabase, analysed: AnalysedPolicy): readonly PgRelation[] {
  const { table, policy } = analysed;
  const isSelect = governs(policy, 'SELECT');
  const isRepeated = ({ relation, role }: RelationRead): boolean =>
    relation === table &&
    selectPolicies(db, table, role).some((other) =>
      isSelect
        ? conditionReads(db, other, role).length > 0
        : other.parsed.some((e) => e.subqueries.length > 0),
    );
  const found = new Set<PgRelation>();
  for (const role of db.catalog.roles.values()) {
    if (!db.isFor(policy, role) || db.access.exemption(role.id, table) !== null) continue;
    const reads = isSelect ? conditionReads(db, analysed, role.id) : subqueryReads(db, analysed, role.id);
    for (const read of reads) if (readsWithin(db, read).some(isRepeated)) found.add(read.relation);
  }
  return table.rowSecurity === 'off' ? [] : [...found];
}

function subqueryReads(db: CheckedDatabase, analysed: AnalysedPolicy, role: Oid): readonly RelationRead[] {
  return subqueryTables(db, analysed).map((relation) => ({ relation, role }));
}

/** Relations in the subqueries of a policy, and in the functions that it calls. */
function conditionReads(db: CheckedDatabase, analysed: AnalysedPolicy, role: Oid): readonly RelationRead[] {
  const inFunctions = db.functionsOf(analysed).flatMap((called) => {
    const reader = called.securityDefiner ? called.owner : role;
    return db.readsOf(called).map((relation) => ({ relation, role: reader }));
  });
  return [...subqueryReads(db, analysed, role), ...inFunctions];
}

/** A read, and those that it causes: of a view, its relations; of a protected table, those of its SELECT policies. */
function readsWithin(db: CheckedDatabase, first: RelationRead): readonly RelationRead[] {
  const seen = new Map<string, RelationRead>();
  const open = [first];
  for (let read = open.pop(); read !== undefined; read = open.pop()) {
    const { relation, role } = read;
    const key = `${relation.id} ${role}`;
    if (seen.has(key)) continue;
    seen.set(key, read);
    const { view, owner } = relation;
    if (view === null)
      open.push(...selectPolicies(db, relation, role).flatMap((policy) => conditionReads(db, policy, role)));
    else if (relation.kind === 'view')
      for (const inner of view.reads.flatMap((id) => db.catalog.relations.get(id) ?? []))
        open.push({ relation: inner, role: view.securityInvoker ? role : owner });
  }
  return [...seen.values()];
}

/** SELECT policies of a table that apply to a role; none if row security does not apply to it. */
function selectPolicies(db: CheckedDatabase, table: PgRelation, role: Oid): readonly AnalysedPolicy[] {
  if (table.rowSecurity === 'off' || db.access.exemption(role, table) !== null) return [];
  return db
    .policiesOf(table)
    .filter(({ policy }) => governs(policy, 'SELECT') && db.isFor(policy, { id: role }));
}

/** True if the role may insert or change any row of the table; false for owners, who may do so anyway. */
function canWriteAny(db: CheckedDatabase, role: Role, table: PgRelation): boolean {
  if (db.access.privilegesOf(role.id).has(table.owner)) return false;
  return (['INSERT', 'UPDATE'] as const).some((command) => {
    if (!db.access.holdsAny(role.id, command, table)) return false;
    if (table.rowSecurity === 'off') return true;
    const applying = db
      .policiesOf(table)
      .filter(({ policy }) => governs(policy, command) && db.isFor(policy, role));
    return (
      applying.some((p) => p.policy.permissive && isAlwaysTrue(newRowCondition(p))) &&
      !applying.some((p) => !p.policy.permissive && selectsRows(newRowCondition(p)))
    );
  });
}
