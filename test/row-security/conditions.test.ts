import { readFileSync, writeFileSync } from 'node:fs';
import { compile, type GovernedPlan } from 'osl-compiler';
import t from 'tap';
import type { GovernedEngine } from '../../src/engine/index.js';
import { openService } from '../../src/service/open.js';
import type { Service } from '../../src/service/service.js';
import { settingsFrom } from '../../src/service/settings.js';
import { allClear } from '../proof/oracle/copies.js';
import { type Caller, SURFACES, startFrontends } from '../support/frontends.js';
import { NO_NATIVE, startNativePostgres } from '../support/native-postgres.js';
import { replacing } from '../support/replacing.js';
import { sealedParts, sealing } from '../support/sealed-parts.js';
import { temporary } from '../tools/cli/support.js';
import { asOwner, project, SCRIPT, URL_ENV } from './hr.js';

t.setTimeout(300_000);
const postgres = await startNativePostgres();
const EVERYTHING: Caller = { subject: 'user:all', aclRoles: ['everything'] };

/** A compiler that has forgotten everything, so that only the database stands in the way. */
function forgetful(service: Service): Service {
  const broken = (engine: GovernedEngine): GovernedEngine =>
    replacing(engine, {
      short: () => null, // each question comes by here
      execute: (_plan, _values, options, sink) => {
        const { catalog } = service.model().manifest;
        const plan: GovernedPlan = compile('select id from employee order by id', catalog, allClear(catalog));
        return engine.execute(plan, [], options, sink);
      },
    });
  const engines = new Map([...sealedParts(service).engines].map(([name, e]) => [name, broken(e)]));
  return sealing(service, { engines });
}

if (postgres === null) t.test('conditions in the second line', { skip: NO_NATIVE }, async () => undefined);
else {
  t.teardown(() => postgres.stop());
  process.env[URL_ENV] = postgres.readerUrl;
  await asOwner(postgres, SCRIPT);
  const here = project(temporary(), postgres);
  const { dir, dataDir, manifestFile, policyFile } = here;
  const plain = readFileSync(policyFile, 'utf8');
  const grant = /(everything:[\s\S]*?on: employee, columns: )("\*"|\[[^\]]*\])/;
  const conditional = plain.replace(grant, '$1$2, when: { surfaces: [rest] }');
  if (conditional === plain) throw new Error('the policy has changed');
  writeFileSync(policyFile, conditional);

  t.test('a grant with conditions opens rows of the database while they hold, and no longer', async (t) => {
    const written = await here.rowSecurity('--write', '--url', postgres.url);
    t.equal(written.code, 0, written.stderr);
    const log = { info: () => undefined, warn: () => undefined, error: () => undefined };
    const open = await openService(settingsFrom({}, dir, { manifestFile, policyFile, dataDir }), log);
    t.teardown(() => open.close());
    const frontends = await startFrontends({ ...open, service: forgetful(open.service) });
    t.teardown(() => frontends.stop());
    for (const surface of SURFACES) {
      const asker = await frontends.asker(surface, EVERYTHING);
      // A question that the caller may ask: what runs in its place is the forgetful compiler's.
      const { outcome } = await asker.ask('select id from osl.entities.note');
      asker.end();
      const rows = outcome.kind === 'rows' ? outcome.rows.length : outcome.code;
      t.equal(rows, surface === 'REST' ? 12 : 0, `${surface}: ${JSON.stringify(outcome).slice(0, 200)}`);
    }
  });
}
