import { readRecords, verifyAuditLog } from '../../audit/index.js';
import type { ServiceLog } from '../../src/base/log.js';
import { openService } from '../../src/service/open.js';
import { settingsFrom } from '../../src/service/settings.js';
import { createHttpServer } from '../../src/surfaces/http/server.js';
import { createPgFrontend } from '../../src/surfaces/pg/index.js';

/** Exports of the bundle that the simulator runs: a gateway with both surfaces, put together as `osl serve` does. */
export interface GatewayModule {
  openGateway: typeof openGateway;
  readRecords: typeof readRecords;
  verifyAuditLog: typeof verifyAuditLog;
}

export type RunningGateway = Awaited<ReturnType<typeof openGateway>>;

export interface GatewayOptions {
  readonly env: Readonly<Record<string, string>>;
  readonly dir: string;
  readonly segmentBytes: number;
  readonly pgPort: number;
  readonly httpPort: number;
  readonly log: ServiceLog;
}

export async function openGateway({ env, dir, segmentBytes, pgPort, httpPort, log }: GatewayOptions) {
  const settings = settingsFrom(env, dir);
  const open = await openService({ ...settings, audit: { ...settings.audit, segmentBytes } }, log);
  const { service } = open;
  const pg = createPgFrontend(service, {});
  const http = await createHttpServer(service, {});
  await pg.listen(pgPort, '127.0.0.1');
  await http.listen(httpPort, '127.0.0.1');
  const stop = async (deadlineMs: number): Promise<void> => {
    await Promise.all([pg.stop(deadlineMs), http.close(deadlineMs)]);
    await open.close();
  };
  return { open, service, pg, http, stop };
}

export { readRecords, verifyAuditLog };
