import type { Oid, PgRelation, Role } from '../catalog/catalog.js';
import { policyObject, qualified, roleNames } from '../catalog/catalog.js';
import { type AnalysedPolicy, type CheckedDatabase, governs, listed } from '../database.js';
import { isAlwaysTrue } from '../expression.js';
import { type RlsRule, violation } from '../finding.js';

/** Rules about policies whose conditions read other tables. */
export const DEPENDENCIES: readonly RlsRule[] = [
  {
    code: 'RLS019',
    severity: 'error',
    title: 'policy that reads its own table',
    consequence:
      'Each query on the table by a role that row security applies to fails: infinite recursion (42P17), or a stack that is too deep.',
    mend: 'read the table in a SECURITY DEFINER function of its owner, or a table without such a policy',
    check: (db) => {
      const next = readGraph(db);
      return readingPolicies(db).flatMap(({ table, policy, ...analysed }) => {
        const through = dependenciesOf(db, { table, policy, ...analysed }).filter((read) =>
          isReachable(next, read.id, table.id),
        );
        if (through.length === 0) return [];
        const others = through.filter((read) => read.id !== table.id);
        const detail = others.length === 0 ? null : `through ${listed(others.map(qualified))}`;
        return [violation(policyObject(table, policy), detail)];
      });
    },
  },
  {
    code: 'RLS020',
    severity: 'note',
    title: 'policy that reads another protected table',
    consequence:
      'The policies of that table apply in the condition, too, so that it sees only some of its rows.',
    mend: 'make sure that its policies show these rows, or read it in a SECURITY DEFINER function',
    check: (db) =>
      db.policies.flatMap((analysed) => {
        const read = subqueryTables(db, analysed).filter((table) => {
          return table.rowSecurity !== 'off' && table.id !== analysed.table.id;
        });
        if (read.length === 0) return [];
        const detail = `reads ${listed(read.map(qualified))}`;
        return [violation(policyObject(analysed.table, analysed.policy), detail)];
      }),
  },
  {
    code: 'RLS056',
    severity: 'warning',
    title: 'policy that reads a table its roles may not read',
    consequence: 'Each query of the role on the table of the policy fails with 42501.',
    mend: 'grant SELECT on the columns that the condition reads, or read them in a SECURITY DEFINER function',
    check: (db) =>
      db.policies.flatMap((analysed) => {
        const denied = subqueryTables(db, analysed).flatMap((read) => {
          const roles = db
            .affectedRoles(analysed)
            .filter((role) => db.access.columns(role.id, 'SELECT', read).length === 0);
          return roles.length === 0 ? [] : [`${qualified(read)}: ${listed(roleNames(roles))}`];
        });
        if (denied.length === 0) return [];
        return [violation(policyObject(analysed.table, analysed.policy), denied.join('; '))];
      }),
  },
  {
    code: 'RLS057',
    severity: 'error',
    title: 'role that can write the table which decides its rows',
    consequence:
      'The role inserts or changes a row there, such as a membership of its own, and then sees more rows.',
    mend: 'revoke INSERT and UPDATE on that table, or enable row security on it',
    check: (db) =>
      db.policies.flatMap((analysed) => {
        const open = allReads(db, analysed).flatMap((read) => {
          const roles = db.affectedRoles(analysed).filter((role) => canWriteAny(db, role, read));
          return roles.length === 0 ? [] : [`${qualified(read)}: ${listed(roleNames(roles))}`];
        });
        if (open.length === 0) return [];
        return [violation(policyObject(analysed.table, analysed.policy), open.join('; '))];
      }),
  },
];

function readingPolicies({ policies }: CheckedDatabase): readonly AnalysedPolicy[] {
  return policies.filter(({ table, policy }) => table.rowSecurity !== 'off' && governs(policy, 'SELECT'));
}

/** Relations in the subqueries of a policy's conditions. */
function subqueryTables(db: CheckedDatabase, { parsed }: AnalysedPolicy): readonly PgRelation[] {
  const named = parsed.flatMap((e) => e.subqueries.flatMap(({ relations }) => relations));
  return [...new Set(named.flatMap((name) => db.relationNamed(name) ?? []))];
}

/** Tables in the subqueries of a policy and in functions that it calls, except its own table. */
function allReads(db: CheckedDatabase, analysed: AnalysedPolicy): readonly PgRelation[] {
  const called = analysed.parsed.flatMap((e) => e.calls).flatMap(db.functionsNamed);
  const read = new Set([...subqueryTables(db, analysed), ...called.flatMap(db.readsOf)]);
  return [...read].filter((relation) => relation.id !== analysed.table.id && relation.kind.includes('table'));
}

/**
 * Protected tables whose policies apply while the condition is evaluated: those of its subqueries, of views that it
 * reads, and of functions that run as a role to which row security applies.
 */
function dependenciesOf(db: CheckedDatabase, analysed: AnalysedPolicy): readonly PgRelation[] {
  const called = analysed.parsed.flatMap((e) => e.calls).flatMap(db.functionsNamed);
  const inFunctions = called.flatMap((f) =>
    db.readsOf(f).filter((read) => !f.securityDefiner || db.access.exemption(f.owner, read) === null),
  );
  const seen = new Set<PgRelation>();
  const open = [...subqueryTables(db, analysed), ...inFunctions];
  for (let read = open.pop(); read !== undefined; read = open.pop()) {
    if (seen.has(read)) continue;
    seen.add(read);
    open.push(...relationsBehind(db, read));
  }
  return [...seen].filter((read) => read.rowSecurity !== 'off');
}

/** Relations that a view reads and whose policies apply: to its owner or, with security_invoker, to the caller. */
function relationsBehind(
  { catalog, access }: CheckedDatabase,
  { view, owner, kind }: PgRelation,
): readonly PgRelation[] {
  if (view === null || kind === 'materialized view') return [];
  return view.reads
    .flatMap((id) => catalog.relations.get(id) ?? [])
    .filter((read) => view.securityInvoker || access.exemption(owner, read) === null);
}

/** For each table, the tables whose policies apply when its own policies are evaluated. */
function readGraph(db: CheckedDatabase): ReadonlyMap<Oid, ReadonlySet<Oid>> {
  const graph = new Map<Oid, Set<Oid>>();
  for (const analysed of readingPolicies(db)) {
    const next = graph.get(analysed.table.id) ?? new Set();
    for (const read of dependenciesOf(db, analysed)) next.add(read.id);
    graph.set(analysed.table.id, next);
  }
  return graph;
}

function isReachable(graph: ReadonlyMap<Oid, ReadonlySet<Oid>>, from: Oid, to: Oid): boolean {
  const reached = new Set([from]);
  for (const id of reached) for (const next of graph.get(id) ?? []) reached.add(next);
  return reached.has(to);
}

/** True if the role may insert or change any row of the table; false for owners, who may do so anyway. */
function canWriteAny(db: CheckedDatabase, role: Role, table: PgRelation): boolean {
  if (db.access.privilegesOf(role.id).has(table.owner)) return false;
  return (['INSERT', 'UPDATE'] as const).some((command) => {
    if (db.access.columns(role.id, command, table).length === 0) return false;
    if (table.rowSecurity === 'off') return true;
    return db.policiesOf(table).some((analysed) => {
      const { policy, using, check } = analysed;
      const applies = db.isFor(policy, role);
      return policy.permissive && governs(policy, command) && applies && isAlwaysTrue(check ?? using);
    });
  });
}
