import { createPgFrontend } from '../../src/pg/index.js';
import type { ServiceLog } from '../../src/service.js';
import { openService } from '../../src/start/service.js';
import { settingsFrom } from '../../src/start/settings.js';
import { noLog } from './no-log.js';

/**
 * The wire in front of the service that `osl serve` opens, with the durable log (`on`) or with one that keeps
 * nothing (`off`). Both contestants of the bench are this program, so they differ in the log alone.
 */
const log: ServiceLog = { info: () => undefined, warn: tell, error: tell };

function tell(message: string, fields: Readonly<Record<string, unknown>> = {}): void {
  process.stderr.write(`${message} ${JSON.stringify(fields)}\n`);
}

const settings = settingsFrom(process.env, process.cwd());
const open = await openService(settings, log);
const service =
  process.argv[2] === 'off' ? { ...open.service, audit: noLog(open.service.audit) } : open.service;
const pg = createPgFrontend(service);
const { port: pgPort } = await pg.listen(0, '127.0.0.1');
process.stdout.write(`${JSON.stringify({ event: 'listening', pgPort, httpPort: 0 })}\n`);
process.once('SIGTERM', () => void pg.stop(0).then(() => open.close()));
