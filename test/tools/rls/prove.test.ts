import { ready } from 'osl-compiler';
import t from 'tap';
import { Solver } from '../../../cli/policy-proof/solver.js';
import { provePolicy, type RoleProof } from '../../../cli/rls/prove/prove-policy.js';
import { ExampleTrials } from '../../../cli/rls/prove/trial.js';
import { compileSnapshot, type PolicyDocument } from '../../../policy/index.js';
import { NO_NATIVE, startNativePostgres } from '../../support/native-postgres.js';
import { importedFixtures, writtenFiles } from './fixture-database.js';
import { FIXTURES } from './import-fixtures.js';

t.setTimeout(240_000);
const postgres = await startNativePostgres();
if (postgres === null) t.test('row security is proved', { skip: NO_NATIVE }, async () => undefined);
else {
  await ready();
  const t0 = Date.now();
  const { imported, definitions, database } = await importedFixtures(t, postgres, FIXTURES);
  console.error('import', Date.now() - t0);
  const { manifest } = imported.manifest;
  const trials = new ExampleTrials(database, definitions, writtenFiles(imported, imported.policy));
  const solver = await Solver.start();
  t.teardown(async () => {
    solver.stop();
    await trials.close();
  });
  const prove = (document: PolicyDocument): Promise<readonly RoleProof[]> => {
    const policy = { snapshot: compileSnapshot(document, manifest.catalog), catalog: manifest.catalog };
    const input = { database, manifest, policy, attributes: imported.attributes };
    return provePolicy(input, solver, trials.of(document));
  };
  const proofs = await prove(imported.policy);
  console.error('prove', Date.now() - t0);
  for (const { role, table, verdict } of proofs)
    if (verdict.kind !== 'equal')
      console.error(
        role.slice(0, 4),
        table,
        verdict.kind,
        verdict.kind === 'unknown'
          ? verdict.because + ' ' + verdict.neverMore
          : JSON.stringify([
              [...verdict.example.row],
              verdict.example.caller.claims,
              [...verdict.example.caller.settings],
              verdict.example.others.map((o) => [...o.row]),
            ]),
      );
  console.error(JSON.stringify(imported.policy.attributes, null, 1));
  for (const [n, r] of Object.entries(imported.policy.roles))
    for (const g of r.grants) console.error(n.slice(0, 4), g.on, g.rows, imported.attributes.length);
  const count: Record<string, number> = {};
  for (const { verdict } of proofs) count[verdict.kind] = (count[verdict.kind] ?? 0) + 1;
  console.error(count);
  t.ok(proofs.length);
}
