import { policyObject, relationObject } from '../catalog/catalog.js';
import { type RlsRule, violation } from '../finding.js';
import { outputsOfView } from '../statement.js';
import { BYPASS } from './bypass.js';
import { CHANNELS } from './channels.js';
import { COVERAGE, PARTITIONS } from './coverage.js';
import { DEPENDENCIES } from './dependencies.js';
import { FUNCTIONS, SETTINGS } from './functions.js';
import { OPEN_CONDITIONS } from './open-conditions.js';
import { PERFORMANCE } from './performance.js';
import { PRIVILEGES } from './privileges.js';
import { UNUSED_POLICIES } from './unused-policies.js';
import { VIEWS } from './views.js';

/** Rules about parts that the check could not read, and about faults of the server that no policy can fix. */
const LIMITS_OF_CHECK: readonly RlsRule[] = [
  {
    code: 'RLS046',
    severity: 'warning',
    title: 'server with known faults in row security',
    consequence: 'Under the conditions of these reports, rows that policies hide are shown or changed.',
    mend: 'install the newest minor release',
    check: ({ catalog: { server } }) => {
      const [major, minor] = [Math.floor(server.number / 10_000), server.number % 10_000];
      const open = FIXES.filter(({ fixed }) => minor < (fixed.get(major) ?? 0)).map(({ report }) => report);
      if (open.length === 0) return [];
      const object = { kind: 'server' as const, identity: `PostgreSQL ${server.version}`, schema: null };
      return [violation(object, open.join(', '))];
    },
  },
  {
    code: 'RLS058',
    severity: 'note',
    title: 'policy or view that this check cannot parse',
    consequence: 'The rules about conditions of policies, or about columns of views, did not look at it.',
    mend: 'read it yourself',
    check: (db) => [
      ...db.policies.flatMap(({ table, policy, using, check }) => {
        const failed = [using, check].find((e) => e?.kind === 'unparsed');
        if (failed?.kind !== 'unparsed') return [];
        return [violation(policyObject(table, policy), failed.reason)];
      }),
      ...db.relations
        .filter(({ kind, view }) => kind === 'view' && outputsOfView(view?.definition ?? '') === null)
        .map((view) => violation(relationObject(view))),
    ],
  },
  {
    code: 'RLS059',
    severity: 'error',
    title: 'part of the catalog that the connected role may not read',
    consequence: 'No other rule was checked, because findings from a part of the catalog would be wrong.',
    mend: 'connect as a role that may read the catalog of the system',
    check: ({ catalog }) =>
      catalog.unread.map(({ part, reason }) =>
        violation({ kind: 'catalog' as const, identity: part, schema: null }, reason),
      ),
  },
];

/** The minor release with the fix, by major release; other major releases never had the fault. */
interface ServerFix {
  readonly report: string;
  readonly fixed: ReadonlyMap<number, number>;
}

// biome-ignore format: one line each
const FIXES: readonly ServerFix[] = [
  // The policies of the wrong role could apply after a function was inlined.
  { report: 'CVE-2023-2455', fixed: new Map([[14, 8], [15, 3]]) },
  // MERGE did not apply the policies of UPDATE and SELECT.
  { report: 'CVE-2023-39418', fixed: new Map([[15, 4]]) },
  // A cached plan kept the policies of another role.
  { report: 'CVE-2024-10976', fixed: new Map([[14, 14], [15, 9], [16, 5], [17, 1]]) },
  // Statistics of the planner showed values of hidden rows.
  { report: 'CVE-2025-8713', fixed: new Map([[14, 19], [15, 14], [16, 10], [17, 6]]) },
];

/** Code of the rule for a catalog that could not be read as a whole. */
export const UNREAD_CATALOG = 'RLS059';

/** Groups of rules, in the order of the documentation. */
export const RULE_GROUPS: readonly (readonly [heading: string, rules: readonly RlsRule[]])[] = [
  ['Missing protection', COVERAGE],
  ['Conditions that let too much through', OPEN_CONDITIONS],
  ['Roles that row security does not apply to', BYPASS],
  ['Views and foreign tables', VIEWS],
  ['Partitions and inheritance', PARTITIONS],
  ['Functions', FUNCTIONS],
  ['Settings and claims', SETTINGS],
  ['Tables that conditions read', DEPENDENCIES],
  ['Privileges', PRIVILEGES],
  ['What becomes known of hidden rows', CHANNELS],
  ['Policies that change nothing', UNUSED_POLICIES],
  ['Speed', PERFORMANCE],
  ['The server, and limits of the check', LIMITS_OF_CHECK],
];

/** All rules, sorted by code. */
export const RULES: readonly RlsRule[] = RULE_GROUPS.flatMap(([, rules]) => rules).toSorted((a, b) =>
  a.code < b.code ? -1 : 1,
);
