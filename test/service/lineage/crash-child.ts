import { join } from 'node:path';
import { compile, ready } from 'osl-compiler';
import { openAuditLog } from '../../../audit/index.js';
import { loadLineageConfig } from '../../../src/service/lineage/config/load.js';
import { accessOfChain } from '../../../src/service/lineage/description.js';
import { openLineage } from '../../../src/service/lineage/lineage.js';
import { endOf } from '../../../src/service/lineage/outbox/state.js';
import { loadModel } from '../../../src/service/model.js';

/**
 * Run by crash.test.ts: the audit log and the thread that emits, as a service has them. Records runs of real plans
 * until it is killed, and prints a letter for each that was acknowledged. With `finish` it records nothing, waits until
 * everything is delivered, and ends in order.
 */
const [dir = '', example = '', mode = ''] = process.argv.slice(2);
await ready();
const model = await loadModel(join(example, 'manifest.yaml'), join(example, 'policy.yaml'), null);
const { manifest, snapshot } = model;
if (snapshot === null) throw new Error('the example has a policy');
const access = accessOfChain(['user:analyst'], snapshot, manifest);
const plans = ['name', 'version', 'license'].map((column) =>
  compile(`select ${column} from osl.entities.package where dev`, manifest.catalog, access),
);
const audit = await openAuditLog({ dir: join(dir, 'audit'), tenant: 'demo', segmentBytes: 64 * 1024 });
const quiet = (): void => undefined;
const lineage = await openLineage({
  config: { ...(await loadLineageConfig(join(dir, 'lineage.yaml'))), windowMs: 40 },
  tenant: 'demo',
  version: 'test',
  auditDir: join(dir, 'audit'),
  dir: join(dir, 'lineage'),
  end: endOf(audit),
  audit,
  announcesDatasets: true,
  log: { info: quiet, warn: quiet, error: (message) => process.stderr.write(`${message}\n`) },
  urlOf: () => null,
  pollMs: 15,
});

function run(n: number): Promise<number> {
  const plan = plans[n % plans.length];
  if (plan === undefined) throw new Error('there are plans');
  const request_id = `${process.pid}-${n}`;
  const fingerprint = lineage.note(plan, request_id);
  if (fingerprint === null) throw new Error('the plan was not noted');
  return audit.append({
    kind: 'decision',
    request_id,
    tenant: 'demo',
    surface: 'rest',
    action: 'query',
    decision: 'allow',
    versions: { manifest: plan.catalogVersion, policy: plan.policyVersion },
    plan: fingerprint,
  });
}

if (mode === 'finish') {
  for (let waits = 0; ; waits++) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    const stats = lineage.stats();
    const { pending = 1 } = stats?.endpoints['here'] ?? {};
    if (pending === 0 && stats !== null && stats.read >= audit.stats().durable) break;
    if (waits > 600) throw new Error(`not everything was delivered: ${JSON.stringify(stats)}`);
  }
  await lineage.close(5_000);
  await audit.close();
  process.exit(0);
}

process.stdout.write('r');
for (let n = 0; ; n += 8) {
  await Promise.all(
    Array.from({ length: 8 }, async (_, i) => {
      await run(n + i);
      process.stdout.write('a');
    }),
  );
  await new Promise((resolve) => setTimeout(resolve, 3));
}
