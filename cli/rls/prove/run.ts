import { ready } from 'osl-compiler';
import type { Diagnostic } from '../../../src/model/manifest/index.js';
import { EXIT } from '../../exit.js';
import { counted, note, print, printJson, visible } from '../../output.js';
import { placesIn, withInstalledSolver } from '../../policy/prove.js';
import { sarifLog } from '../../sarif.js';
import {
  checkedDatabase,
  type DatabaseFlags,
  loadFolder,
  openDatabase,
  scopeOf,
  urlOf,
  wholeCatalogOf,
} from '../database.js';
import { importedPolicy } from '../import/draft.js';
import type { Example, ExampleRow } from './examples.js';
import { type PolicyProofVerdict, provePolicy, type RoleProof } from './prove-policy.js';
import { scratchDefinitions } from './scratch.js';
import { ExampleTrials } from './trial.js';

export interface RlsProveFlags extends DatabaseFlags {
  readonly json?: boolean;
  readonly sarif?: boolean;
}

/**
 * Compares the policy of a folder with the row security of a database for each role and table, using the solver, and
 * sets the exit status. Reads the catalog, but no rows.
 *
 * @throws Failure for invalid flags, a database that cannot be reached, a catalog that cannot be read, or a missing
 * solver; the errors of `loadModel`
 */
export async function runRlsProve(folder: string, flags: RlsProveFlags): Promise<void> {
  const url = await urlOf(flags);
  await withInstalledSolver(async (starting) => {
    await ready();
    const { manifestFile, policyFile, manifest, snapshot } = await loadFolder(folder);
    const { catalog, definitions } = await readDatabase(url);
    const database = checkedDatabase(catalog, scopeOf(flags, catalog));
    const { attributes } = importedPolicy({ database, manifest, tenant: snapshot.tenant });
    const trials = new ExampleTrials(database, definitions, { manifestFile, policyFile });
    try {
      const policy = { snapshot, catalog: manifest.catalog };
      const input = { database, manifest, policy, attributes };
      const proofs = await provePolicy(input, await starting, trials.of(snapshot.document));
      if (flags.sarif === true) printJson(sarifLog(await proofProblems(policyFile, proofs)));
      report(proofs, flags);
    } finally {
      await trials.close();
    }
  });
}

/** @throws Failure if a part of the catalog cannot be read, since that part could restrict rows */
async function readDatabase(url: string) {
  const survey = await openDatabase(url);
  try {
    return {
      catalog: await wholeCatalogOf(survey),
      definitions: await scratchDefinitions(survey.system),
    };
  } finally {
    survey.close();
  }
}

/** Exit status if a comparison is neither proved equal nor shown to differ. */
const UNKNOWN = 3;

function report(proofs: readonly RoleProof[], { json, sarif }: RlsProveFlags): void {
  if (json === true) printJson(proofJson(proofs));
  else if (sarif !== true) for (const line of proofLines(proofs)) print(line);
  if (proofs.length === 0) note('no role of the policy may read a table of the model');
  const kinds = new Set(proofs.map(({ verdict }) => verdict.kind));
  if (kinds.has('wider') || kinds.has('differs')) process.exitCode = EXIT.failed;
  else if (kinds.has('unknown')) process.exitCode = UNKNOWN;
}

/** Proofs as data for `--json`. All values of examples are made up. */
export function proofJson(proofs: readonly RoleProof[]) {
  return {
    proofs: proofs.map(({ role, entity, table, verdict, assumes }) => ({
      role,
      entity,
      table: table === '' ? null : table,
      ...verdictJson(verdict),
      assumes,
    })),
  };
}

function verdictJson(verdict: PolicyProofVerdict) {
  switch (verdict.kind) {
    case 'equal':
      return { verdict: verdict.kind };
    case 'narrower':
    case 'wider':
      return { verdict: verdict.kind, example: exampleJson(verdict.example) };
    case 'differs':
      return {
        verdict: verdict.kind,
        example: exampleJson(verdict.example),
        less: exampleJson(verdict.less),
      };
    case 'unknown':
      return { verdict: verdict.kind, because: verdict.because, never_more: verdict.neverMore };
  }
}

function exampleJson({ column, row, others, caller }: Example) {
  return {
    column,
    row: Object.fromEntries(row),
    others: others.map((one) => ({ entity: one.entity.name, row: Object.fromEntries(one.row) })),
    settings: Object.fromEntries(caller.settings),
    claims: caller.claims,
    attributes: caller.attributes,
  };
}

const PROBLEMS = {
  narrower: { severity: 'warning', code: 'narrower_than_row_security' },
  wider: { severity: 'error', code: 'wider_than_row_security' },
  differs: { severity: 'error', code: 'differs_from_row_security' },
  unknown: { severity: 'warning', code: 'row_security_not_compared' },
} as const;

/** Verdicts other than `equal` for SARIF, at the grants of the role in the policy file. */
async function proofProblems(
  policyFile: string,
  proofs: readonly RoleProof[],
): Promise<readonly Diagnostic[]> {
  const place = await placesIn(policyFile);
  return proofs.flatMap(({ role, entity, table, verdict }) => {
    if (verdict.kind === 'equal') return [];
    const lines = [...verdictLines(verdict)].map((line) => line.trim());
    const message = `${role} on ${nameOf(entity, table)}: ${lines.join('; ')}`;
    return [place(['roles', role, 'grants'], { ...PROBLEMS[verdict.kind], message })];
  });
}

const LABELS = {
  equal: 'equal   ',
  narrower: 'narrower',
  wider: 'WIDER   ',
  differs: 'DIFFERS ',
  unknown: 'unknown ',
} as const;

/** Name of what a proof is about: its table, and its entity if that has another name, as one over a view has. */
function nameOf(entity: string, table: string): string {
  if (table === '') return entity;
  return table.endsWith(`.${entity}`) ? table : `${table} as ${entity}`;
}

/** Formats proofs for the terminal. */
export function* proofLines(proofs: readonly RoleProof[]): Generator<string> {
  for (const { role, entity, table, verdict } of proofs) {
    const never = verdict.kind === 'unknown' && verdict.neverMore ? ' (never more)' : '';
    yield visible(`${LABELS[verdict.kind]} ${role} on ${nameOf(entity, table)}${never}`);
    yield* verdictLines(verdict);
  }
  const of = (kind: PolicyProofVerdict['kind']): number =>
    proofs.filter(({ verdict }) => verdict.kind === kind).length;
  const assumed = [...new Set(proofs.flatMap(({ assumes }) => assumes))];
  if (assumed.length > 0)
    yield visible(`for callers for whom the database does not fail: ${assumed.join('; ')}`);
  yield `${counted(proofs.length, 'proof', 'proofs')}: ${of('equal')} equal, ${of('narrower')} narrower, ` +
    `${of('wider')} wider, ${of('differs')} different, ${of('unknown')} unknown`;
}

function* verdictLines(verdict: PolicyProofVerdict): Generator<string> {
  switch (verdict.kind) {
    case 'equal':
      return;
    case 'narrower':
    case 'wider':
      yield* exampleLines(verdict.example);
      return;
    case 'differs':
      yield* exampleLines(verdict.example);
      yield* exampleLines(verdict.less);
      return;
    case 'unknown':
      yield visible(`           ${verdict.because}`);
      return;
  }
}

function* exampleLines({ direction, column, entity, row, others, caller }: Example): Generator<string> {
  const where = direction === 'more' ? 'the gateway alone' : 'the database alone';
  yield `           ${where} shows ${column === null ? 'the row' : `the column ${column}`}`;
  yield visible(`           row of ${entity.name}: ${cells(row)}`);
  for (const one of others) yield visible(`           with a row of ${one.entity.name}: ${cells(one.row)}`);
  const values = [
    ...[...caller.settings].map(([name, value]) => `setting ${name} = ${JSON.stringify(value)}`),
    ...Object.entries(caller.claims).map(([name, value]) => `claim ${name} = ${JSON.stringify(value)}`),
  ];
  yield visible(
    `           caller: ${caller.role} with ${values.length === 0 ? 'no values' : values.join(', ')}`,
  );
}

function cells(row: ExampleRow): string {
  const known = [...row].filter(([, value]) => value !== null);
  return known.length === 0 ? 'all NULL' : known.map(([column, value]) => `${column} = ${value}`).join(', ');
}
