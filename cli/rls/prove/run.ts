import { join, resolve } from 'node:path';
import { ready } from 'osl-compiler';
import { loadModel } from '../../../src/service/model.js';
import { EXIT, usage } from '../../exit.js';
import { note, print, printJson } from '../../output.js';
import { withInstalledSolver } from '../../policy/solver.js';
import { sarifLog } from '../../sarif.js';
import { checkedDatabase } from '../checked-database.js';
import { catalogOf, type DatabaseFlags, openDatabase, scopeOf, urlOf } from '../database.js';
import { importedPolicy } from '../import/draft.js';
import { provePolicy, type RoleProof } from './prove-policy.js';
import { proofJson, proofLines, proofProblems } from './report.js';
import { scratchDefinitions } from './scratch.js';
import { ExampleTrials } from './trial.js';

export interface RlsProveFlags extends DatabaseFlags {
  readonly json?: boolean;
  readonly sarif?: boolean;
}

/**
 * Compares the policy of a folder with the row security of a database by the solver, for each role and each table, and
 * sets the exit status. Reads the catalog, and no row.
 *
 * @throws Failure for wrong flags, a database that cannot be reached, a catalog that cannot be read, and without the
 * solver; the errors of `loadModel`
 */
export async function runRlsProve(folder: string, flags: RlsProveFlags): Promise<void> {
  const dir = resolve(process.cwd(), folder);
  const url = await urlOf(flags);
  await withInstalledSolver(async (starting) => {
    await ready();
    const [manifestFile, policyFile] = [join(dir, 'manifest.yaml'), join(dir, 'policy.yaml')];
    const { manifest, snapshot } = await loadModel(manifestFile, policyFile, null);
    if (snapshot === null) throw usage(`${policyFile} is no policy`);
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

/** @throws Failure if a part of the catalog cannot be read: what it has could restrict rows */
async function readDatabase(url: string) {
  const survey = await openDatabase(url);
  try {
    const catalog = await catalogOf(survey);
    const [unread] = catalog.unread;
    if (unread !== undefined)
      throw usage(`${catalog.reader} may not read the ${unread.part}: ${unread.reason}`);
    return { catalog, definitions: await scratchDefinitions(survey.system) };
  } finally {
    survey.close();
  }
}

/** Exit status if something is neither equal nor shown to differ. */
const UNKNOWN = 3;

function report(proofs: readonly RoleProof[], { json, sarif }: RlsProveFlags): void {
  if (json === true) printJson(proofJson(proofs));
  else if (sarif !== true) for (const line of proofLines(proofs)) print(line);
  if (proofs.length === 0) note('no role of the policy may read a table of the model');
  const kinds = new Set(proofs.map(({ verdict }) => verdict.kind));
  if (kinds.has('wider') || kinds.has('differs')) process.exitCode = EXIT.failed;
  else if (kinds.has('unknown')) process.exitCode = UNKNOWN;
}
