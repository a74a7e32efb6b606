import type { Relation } from 'osl-compiler';
import { identifier } from 'osl-compiler/sql-text';
import {
  compileSnapshot,
  type PolicyDocument,
  type PolicySnapshot,
  type RoleDocument,
} from '../../policy/index.js';
import type { Check, Counterexample, CounterexampleCaller } from '../../policy/proof/index.js';
import type { JsonRow, PolicyTest, PolicyTests } from '../policy-tests/document.js';
import { observe } from '../policy-tests/observe.js';
import { UnfitRows } from '../policy-tests/tables.js';
import { openTestService, type TestService } from '../policy-tests/test-service.js';
import type { Trial } from './decide.js';

/**
 * Runs counterexamples: the row is written to an embedded database, and the callers ask for it as they would ask a
 * server, under a policy with their roles, attributes and conditions. The database is opened for the first one.
 */
export function openTrials(files: Pick<PolicyTests, 'manifestFile' | 'policyFile'>): {
  readonly run: Trial;
  close(): Promise<void>;
} {
  let stand: Promise<TestService> | null = null;
  return {
    run: async (counterexample) => {
      stand ??= openTestService({ ...files, data: new Map() });
      return trial(counterexample, await stand);
    },
    close: async () => (await stand)?.close(),
  };
}

async function trial(counterexample: Counterexample, stand: TestService): Promise<string | null> {
  const { relation, part, row } = counterexample;
  if (relation.kind === 'facet') return 'rows of a facet cannot be written to try it';
  try {
    await stand.refill(new Map([[tableOf(relation, stand), [Object.fromEntries(row)]]]));
  } catch (error) {
    if (error instanceof UnfitRows) return 'the database does not take the row';
    throw error;
  }
  for (const check of part.checks) {
    const seen = await sees(check, counterexample, stand);
    if (seen === null) return 'what it says of aggregates and models is not tried';
    if (seen !== check.holds) return 'the product does not agree with the solver';
  }
  return null;
}

/** Name of a relation's table, as `source` in the manifest. */
function tableOf({ connector, schema, table }: Relation, stand: TestService): string {
  const tables = stand.service.model().manifest.connectors.get(connector)?.tables ?? new Map();
  const key = [...tables].find(([, t]) => t.schema === schema && t.table === table)?.[0];
  return `${connector}.${key ?? table}`;
}

const ALL = 'everything';

async function sees(
  check: Check,
  counterexample: Counterexample,
  stand: TestService,
): Promise<boolean | null> {
  const { relation, callers, conditions } = counterexample;
  const caller = callers[check.caller];
  if (caller === undefined || check.level === 'other') return null;
  const { catalog, tenant } = stand.service.model().manifest;
  const where = check.level === 'where' ? check.of : null;
  const document = trialPolicy(caller.snapshot, caller, relation, conditions, where);
  const snapshot = compileSnapshot(document, catalog, tenant ?? document.tenant);
  const ask = (subject: string, select: string): Promise<JsonRow | null> =>
    firstRow(stand, snapshot, subject, `select ${select} as x from ${nameOf(relation)}`);
  if (check.level === 'where') return (await ask('user:where', 'count(*)'))?.['x'] === '1';
  if (check.of === null) return (await ask('user:caller', 'count(*)'))?.['x'] === '1';
  const column = identifier(check.of);
  const [own, all] = [await ask('user:caller', column), await ask(`user:${ALL}`, column)];
  if (own === null) return false;
  const value = JSON.stringify(own['x']);
  return check.level === 'clear' ? value === JSON.stringify(all?.['x']) : value !== 'null';
}

async function firstRow(
  stand: TestService,
  snapshot: PolicySnapshot,
  subject: string,
  text: string,
): Promise<JsonRow | null> {
  const test: Pick<PolicyTest, 'chain' | 'roles' | 'from' | 'asked'> = {
    chain: [subject],
    roles: null,
    from: {},
    asked: { kind: 'osql', text },
  };
  const outcome = await observe(stand, snapshot, test);
  return outcome.kind === 'answer' ? (outcome.rows[0] ?? null) : null;
}

function nameOf({ name }: Relation): string {
  return `osl.entities.${identifier(name)}`;
}

/** The policy with the caller as its subject, beside one that sees everything and one that sees where a predicate is true. */
function trialPolicy(
  snapshot: PolicySnapshot,
  { roles, attributes }: CounterexampleCaller,
  { name, columns }: Relation,
  conditions: readonly string[],
  where: string | null,
): PolicyDocument {
  const { version, tenant, masks, order, privacy_units } = snapshot.document;
  const labels = [...new Set(columns.flatMap((c) => c.sensitivity ?? []))];
  const own = roles.map((role) => [role, withoutConditions(role, snapshot, conditions)] as const);
  const given = [...attributes].map(
    ([attribute, values]) => [attribute, values === 'any' ? ({ any: true } as const) : [...values]] as const,
  );
  return {
    version,
    tenant,
    masks,
    ...(order !== undefined && { order }),
    ...(privacy_units !== undefined && { privacy_units }),
    subjects: {
      'user:caller': { ceiling: roles, attributes: Object.fromEntries(given) },
      [`user:${ALL}`]: { ceiling: [ALL] },
      'user:where': { ceiling: ['where'], attributes: Object.fromEntries(given) },
    },
    roles: {
      ...Object.fromEntries(own),
      [ALL]: { grants: [{ on: name, columns: '*', unmask: labels }] },
      where: { grants: where === null ? [] : [{ on: name, columns: '*', rows: where }] },
    },
  };
}

/** The role with the grants whose conditions hold, as grants without conditions. */
function withoutConditions(
  name: string,
  snapshot: PolicySnapshot,
  conditions: readonly string[],
): RoleDocument {
  const document = snapshot.document.roles[name];
  const compiled = [...(snapshot.roles.get(name)?.grants.values() ?? [])].flat();
  const grants = (document?.grants ?? []).flatMap((grant, i) => {
    const key = compiled.find((g) => g.id.endsWith(`.${i}`))?.conditions?.key;
    if (key !== undefined && !conditions.includes(key)) return [];
    const { starts: _starts, ends: _ends, when: _when, for: _for, break_glass: _glass, ...always } = grant;
    return [always];
  });
  const { deny } = document ?? {};
  return { grants, ...(deny !== undefined && { deny }) };
}
