import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { ServiceLog } from '../../src/base/log.js';
import { openService } from '../../src/service/open.js';
import { settingsFrom } from '../../src/service/settings.js';
import { createPgFrontend } from '../../src/surfaces/pg/index.js';
import { lineageYaml } from '../../test/service/lineage/endpoint.js';
import { sealedParts, sealing } from '../../test/support/sealed-parts.js';
import { noLog } from './no-log.js';

/**
 * The wire frontend on the service that `osl serve` opens, with the durable log (`on`), with a log that stores nothing
 * (`off`), or with the log and a lineage receiver (`lineage`), which has its own thread. All contestants of the bench
 * run this program, so they differ only in that.
 */
const log: ServiceLog = { info: () => undefined, warn: tell, error: tell };

function tell(message: string, fields: Readonly<Record<string, unknown>> = {}): void {
  process.stderr.write(`${message} ${JSON.stringify(fields)}\n`);
}

const mode = process.argv[2];
const settings = settingsFrom(process.env, process.cwd(), {
  lineageFile: mode === 'lineage' ? await lineageFile() : null,
});
const open = await openService(settings, log);
const service =
  mode === 'off' ? sealing(open.service, { audit: noLog(sealedParts(open.service).audit) }) : open.service;
const pg = createPgFrontend(service);
const { port: pgPort } = await pg.listen(0, '127.0.0.1');
process.stdout.write(`${JSON.stringify({ event: 'listening', pgPort, httpPort: 0 })}\n`);
process.once('SIGTERM', () => void pg.stop(0).then(() => open.close()));

/** Starts a lineage receiver that accepts everything; returns the path of the lineage file that names it. */
async function lineageFile(): Promise<string> {
  const receiver = new Worker(new URL('./receiver.js', import.meta.url));
  receiver.unref();
  const port = await new Promise((resolve) => receiver.once('message', resolve));
  const dir = mkdtempSync(join(tmpdir(), 'osl-bench-lineage-'));
  process.once('exit', () => rmSync(dir, { recursive: true, force: true }));
  const file = join(dir, 'lineage.yaml');
  writeFileSync(file, `${lineageYaml(`http://127.0.0.1:${String(port)}/`)}window_seconds: 1\n`);
  return file;
}
