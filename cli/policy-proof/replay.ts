import type { Relation } from 'osl-compiler';
import { identifier } from 'osl-compiler/sql-text';
import {
  compileSnapshot,
  type PolicyDocument,
  type PolicySnapshot,
  type RoleDocument,
  withoutConditions,
} from '../../policy/index.js';
import type { Check, Counterexample, CounterexampleCaller } from '../../policy/proof/index.js';
import type { JsonRow, PolicyTest } from '../policy-tests/document.js';
import { observe } from '../policy-tests/observe.js';
import { UnfitRows } from '../policy-tests/tables.js';
import type { TestService } from '../policy-tests/test-service.js';

/**
 * Runs a counterexample: writes its row to an embedded database and queries it as each caller, under a policy with the
 * caller's roles, attributes and conditions. Returns null if the result confirms the counterexample, otherwise the
 * reason why not.
 */
export async function trial(counterexample: Counterexample, stand: TestService): Promise<string | null> {
  const { relation, part, row } = counterexample;
  if (relation.kind === 'facet') return 'rows of a facet cannot be written to try it';
  try {
    await stand.refill(new Map([[tableOf(relation, stand), [Object.fromEntries(row)]]]));
  } catch (error) {
    if (error instanceof UnfitRows) return 'the database does not take the row';
    throw error;
  }
  const callers = new Set(part.checks.map((c) => c.caller));
  const snapshots = new Map([...callers].map((i) => [i, trialSnapshot(i, counterexample, stand)]));
  for (const check of part.checks) {
    const snapshot = snapshots.get(check.caller) ?? null;
    const seen = snapshot === null ? null : await sees(check, relation, snapshot, stand);
    if (seen === null) return 'what it says of aggregates and models is not tried';
    if (seen !== check.holds) return 'the product does not agree with the solver';
  }
  return null;
}

/** Name of the table of a relation, in the notation of `source` in the manifest. */
function tableOf({ connector, schema, table }: Relation, stand: TestService): string {
  const tables = stand.service.model().manifest.connectors.get(connector)?.tables ?? new Map();
  const key = [...tables].find(([, t]) => t.schema === schema && t.table === table)?.[0];
  return `${connector}.${key ?? table}`;
}

/** Subjects of a trial: the caller, one that sees everything, and one whose row filter is the predicate. */
const [CALLER, EVERYTHING, MATCHING] = ['user:caller', 'user:everything', 'user:matching'];

async function sees(
  check: Check,
  relation: Relation,
  snapshot: PolicySnapshot,
  stand: TestService,
): Promise<boolean | null> {
  const ask = (subject: string, select: string): Promise<JsonRow | null> =>
    firstRow(stand, snapshot, subject, `select ${select} as x from ${nameOf(relation)}`);
  const seesRow = async (subject: string): Promise<boolean> =>
    (await ask(subject, 'count(*)'))?.['x'] === '1';
  switch (check.level) {
    case 'row':
      return seesRow(CALLER);
    case 'predicate':
      return seesRow(MATCHING);
    case 'unmasked':
    case 'shown': {
      const column = identifier(check.of);
      const [own, all] = [await ask(CALLER, column), await ask(EVERYTHING, column)];
      if (own === null) return false;
      const value = JSON.stringify(own['x']);
      return check.level === 'unmasked' ? value === JSON.stringify(all?.['x']) : value !== 'null';
    }
    case 'other':
      return null;
  }
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

/** Compiles a caller's policy with the subjects of a trial; null if there is no such caller. */
function trialSnapshot(
  index: number,
  counterexample: Counterexample,
  stand: TestService,
): PolicySnapshot | null {
  const { relation, part, callers, conditions } = counterexample;
  const caller = callers[index];
  if (caller === undefined) return null;
  const predicate = part.checks.find((c) => c.level === 'predicate' && c.caller === index)?.of ?? 'false';
  const { catalog, tenant } = stand.service.model().manifest;
  const document = trialPolicy(caller, relation, conditions, predicate);
  return compileSnapshot(document, catalog, tenant ?? document.tenant);
}

function trialPolicy(
  { snapshot, roles, attributes }: CounterexampleCaller,
  { name, columns }: Relation,
  conditions: readonly string[],
  predicate: string,
): PolicyDocument {
  const { version, tenant, masks, order, privacy_units } = snapshot.document;
  const labels = [...new Set(columns.flatMap((c) => c.sensitivity ?? []))];
  const own = roles.map((role) => [role, roleInForce(role, snapshot, conditions)] as const);
  const given = Object.fromEntries(
    [...attributes].map(([attribute, values]) => [
      attribute,
      values === 'any' ? ({ any: true } as const) : [...values],
    ]),
  );
  const [everything, matching] = [newRole('everything', roles), newRole('matching', roles)];
  return {
    version,
    tenant,
    masks,
    ...(order !== undefined && { order }),
    ...(privacy_units !== undefined && { privacy_units }),
    subjects: {
      [CALLER]: { ceiling: roles, attributes: given },
      [EVERYTHING]: { ceiling: [everything] },
      [MATCHING]: { ceiling: [matching], attributes: given },
    },
    roles: {
      ...Object.fromEntries(own),
      [everything]: { grants: [{ on: name, columns: '*', unmask: labels }] },
      [matching]: { grants: [{ on: name, columns: '*', rows: predicate }] },
    },
  };
}

function newRole(name: string, taken: readonly string[]): string {
  return taken.includes(name) ? newRole(`${name}_`, taken) : name;
}

/** Returns the role with only those grants whose conditions hold, and without the conditions. */
function roleInForce(name: string, snapshot: PolicySnapshot, conditions: readonly string[]): RoleDocument {
  const document = snapshot.document.roles[name];
  const compiled = [...(snapshot.roles.get(name)?.grants.values() ?? [])].flat();
  const grants = (document?.grants ?? []).flatMap((grant, i) => {
    const key = compiled.find((g) => g.id.endsWith(`.${i}`))?.conditions?.key;
    if (key !== undefined && !conditions.includes(key)) return [];
    return [withoutConditions(grant)];
  });
  const { deny } = document ?? {};
  return { grants, ...(deny !== undefined && { deny }) };
}
