import { ready } from 'osl-compiler';
import t, { type Test } from 'tap';
import { Solver } from '../../../cli/policy-proof/solver.js';
import { checkedDatabase } from '../../../cli/rls/database.js';
import { provePolicy, type RoleProof } from '../../../cli/rls/prove/prove-policy.js';
import { proofJson, proofLines } from '../../../cli/rls/prove/run.js';
import { ExampleTrials } from '../../../cli/rls/prove/trial.js';
import { compileSnapshot, type PolicyDocument } from '../../../policy/index.js';
import { tableName } from '../../../src/model/manifest/index.js';
import { NO_NATIVE, startNativePostgres } from '../../support/native-postgres.js';
import { importedFixtures, writtenFiles } from './fixture-database.js';
import { FIXTURES } from './import-fixtures.js';
import { MORE_FIXTURES, MUTANTS, mutated } from './prove-mutants.js';

/*
 * The policies that are imported from row security are compared with it by the solver, and so are policies with faults.
 * What a proof says of rows is tested by import.test.ts: with data, under row security and through the gateway.
 */

/** Verdicts on the imported shapes that are not proved equal, each with a reason. */
const NOT_EQUAL: ReadonlyMap<string, readonly [verdict: string, why: string]> = new Map([
  [
    'email_of_claims',
    ['narrower', 'an empty claim is not an attribute, and in the database it equals an empty text'],
  ],
  ['not_blocked', ['narrower', 'a caller without `sub` sees all rows in the database']],
  ['list_with_where', ['unknown', 'the whole subquery is an expression to the solver']],
  ['not_in_required', ['unknown', 'NULL NOT IN an empty list, for which the example shows no difference']],
  ['session_table', ['unknown', 'an empty setting equals an empty token, until now()']],
]);

/** Tables for which not even "never more" is proved. */
const UNDECIDED: ReadonlySet<string> = new Set(['time_zone.doc', 'not_in_required.doc']);

/** Verdicts on the shapes that are not imported: the role sees no row of them, as in the database if queries fail there. */
const REFUSED: ReadonlySet<string> = new Set(['narrower', 'unknown', 'equal']);

t.setTimeout(240_000);
const postgres = await startNativePostgres();
if (postgres === null) t.test('row security is proved', { skip: NO_NATIVE }, async () => undefined);
else {
  await ready();
  const { roles, imported, definitions, catalog, database } = await importedFixtures(t, postgres, [
    ...FIXTURES,
    ...MORE_FIXTURES,
  ]);
  const { manifest } = imported.manifest;
  const solver = await Solver.start();
  const trials = new ExampleTrials(database, definitions, writtenFiles(imported, imported.policy));
  t.teardown(async () => {
    solver.stop();
    await trials.close();
  });
  const prove = (document: PolicyDocument, of = database): Promise<readonly RoleProof[]> => {
    const policy = { snapshot: compileSnapshot(document, manifest.catalog), catalog: manifest.catalog };
    const input = { database: of, manifest, policy, attributes: imported.attributes };
    return provePolicy(input, solver, trials.of(document));
  };
  const verdictOf = (
    proofs: readonly RoleProof[],
    fixture: string,
    role: string,
  ): RoleProof['verdict'] | null =>
    proofs.find((proof) => proof.table === `${fixture}.doc` && proof.role === role)?.verdict ?? null;

  const proofs = await prove(imported.policy);

  t.test('imported policies', async (t: Test) => {
    let equal = 0;
    for (const { name, refused } of FIXTURES) {
      const verdict = verdictOf(proofs, name, roles.auth);
      const [wanted, why] = NOT_EQUAL.get(name) ?? ['equal', ''];
      if (refused === undefined) t.equal(verdict?.kind, wanted, `${name}${why === '' ? '' : `: ${why}`}`);
      else t.ok(REFUSED.has(verdict?.kind ?? ''), `${name} is refused, and ${verdict?.kind}`);
      if (refused === undefined && verdict?.kind === 'equal') equal++;
    }
    t.equal(equal, 51);
    t.strictSame(
      proofs.filter(
        ({ table, verdict: v }) =>
          v.kind === 'wider' ||
          v.kind === 'differs' ||
          (v.kind === 'unknown' && !v.neverMore && !UNDECIDED.has(table)),
      ),
      [],
      'nowhere more than in the database',
    );
    const forced = proofs.find(
      ({ table, role }) => table === 'owner_and_forced.forced' && role === roles.auth,
    );
    t.equal(forced?.verdict.kind, 'equal', 'row security that is forced on the owner');
    t.match(verdictOf(proofs, 'time_zone', roles.auth), { kind: 'unknown', because: /time zone/ });
    t.not(
      verdictOf(proofs, 'schema_of_user', roles.auth)?.kind,
      'equal',
      "the function reads the table of the role's own schema, which is not imported",
    );
    for (const name of ['some_columns', 'without_using', 'not_readable', 'owner_and_forced'])
      t.equal(verdictOf(proofs, name, roles.auth)?.kind, 'equal', name);
  });

  t.test('reports', async (t: Test) => {
    const lines = [...proofLines(proofs)];
    t.match(lines.at(-1), /^\d+ proofs: \d+ equal, \d+ narrower, 0 wider, 0 different, \d+ unknown$/);
    t.ok(lines.some((line) => /caller: auth_\w+ with claim email = ""/.test(line)));
    t.ok(
      lines.some((line) => /^\w+ +\w+ on \w+\.doc as \w+/.test(line)),
      'an entity with another name than its table',
    );
    t.match(
      proofJson(proofs).proofs,
      proofs.map(({ verdict }) => ({ verdict: verdict.kind })),
    );
  });

  t.test('policies with a fault', async (t: Test) => {
    const relations = [...manifest.catalog.relations.values()];
    const tables = (fixture: string): ReadonlySet<string> =>
      new Set(relations.filter(({ schema }) => schema === fixture).map(({ name }) => name));
    const docOf = (fixture: string): string => {
      const found = relations.find((relation) => tableName(relation) === `${fixture}.doc`);
      if (found === undefined) throw new Error(`${fixture} has no doc`);
      return found.name;
    };
    const schemas = new Set(MUTANTS.map(({ fixture }) => fixture));
    const faulty = await prove(
      mutated(imported.policy, roles.auth, docOf, tables),
      checkedDatabase(catalog, { schemas, roles: new Set([roles.auth]) }),
    );
    for (const { fixture, what, verdict } of MUTANTS) {
      const found = verdictOf(faulty, fixture, roles.auth);
      t.equal(
        found?.kind,
        verdict,
        `${fixture}: ${what}${found?.kind === 'unknown' ? `: ${found.because}` : ''}`,
      );
    }
  });
}
