import { IS_WHOLE, turnOf } from './support/part.js';

/**
 * Test files that take turns: a run of all files has one of them in `TURNS`, another one for each commit, and the night
 * has all. docs/testing.md says why each may wait. Below `test/`, without their ending; the most expensive first.
 */
export const IN_TURNS: readonly string[] = [
  'tools/package/install',
  'tools/cli/demo',
  'service/operations/workers',
  'service/operations/gateways',
  'leakbench/leakbench',
  'surfaces/catalog/lifecycle',
  'proof/budget/operators',
  'service/operations/away',
  'docs/site',
  'console/map-large',
  'language/forms/demo-questions',
  'clients/bi/bi',
  'tools/cli/policy-test',
  'service/operations/resets',
  'tools/cli/backup',
  'console/admin',
  'tools/cli/policy',
  'docs/cookbook',
  'tools/cli/doctor',
  'service/distributed/citus',
  'service/distributed/distributed',
  'tools/cli/login',
  'service/operations/credentials',
  'tools/cli/policy-prove',
  'service/operations/shared-limits',
  'surfaces/catalog/probes',
  'service/operations/tls',
  'tools/lsp/hostile',
  'tools/demo/load',
  'service/operations/fleet',
  'tools/cli/publish',
  'proof/budget/parsing',
  'proof/budget/marks',
  'proof/budget/crowd',
  'proof/faults/outward',
  'service/operations/admin',
  'service/operations/reload',
  'formal/binding',
  'surfaces/catalog/large',
  'service/operations/failover',
  'audit/table/server',
  'surfaces/mcp/stdio',
  'tools/cli/authoring',
  'tools/cli/receipt',
  'console/ask-large',
  'clients/drivers/python',
  'service/distributed/citus-tpch',
  'service/operations/outlives',
  'tools/cli/interchange',
  'language/functions/pg-proc',
  'tools/cli/backup-embedded',
  'service/operations/standbys',
  'service/lineage/workers',
  'console/map',
  'service/lineage/crash',
  'tools/interchange/account',
  'clients/drivers/jdbc',
  'console/metrics',
  'tools/cli/watch',
  'tools/cli/past-questions',
  'tools/package/release',
  'tools/cli/formats',
  'service/rollups',
  'proof/citus/citus',
  'tools/cli/chart',
  'clients/drivers/commands',
  'tools/cli/index-watch',
  'console/oidc',
  'tools/init/citus',
  'tools/package/compose',
];

/** What an answer holds and how it ends, which two engines may do in two ways: once more on the embedded one, in turns. */
export const ON_BOTH: readonly string[] = [
  'proof/attacks/attacks',
  'proof/attacks/protocol',
  'proof/parity/parity',
  'surfaces/rest/client',
  'surfaces/rest/objects',
  'surfaces/rest/query',
  'surfaces/rest/raw-sql',
  'surfaces/rest/sample',
  'surfaces/rest/streaming',
  'surfaces/rest/types',
];

export const TURNS = 3;

/** Whether a run of all files leaves it out. */
export function isLeftOut(name: string): boolean {
  const at = IN_TURNS.indexOf(name);
  return at >= 0 && !IS_WHOLE && at % TURNS !== turnOf('files', TURNS);
}
