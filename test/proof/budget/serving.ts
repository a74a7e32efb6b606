import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { indexContent } from '../../../src/service/indexing/index-content.js';
import { settingsFrom } from '../../../src/service/settings.js';
import { Catalogs } from '../../../src/surfaces/catalog/index.js';
import { createHttpServer } from '../../../src/surfaces/http/server.js';
import { createPgFrontend } from '../../../src/surfaces/pg/index.js';
import { NOTES, VECTORS_POLICY, vectorsManifest, vectorsScript } from '../../language/forms/vectors.js';
import { startTestService, type TestService } from '../../support/service.js';
import { mainThreadMs } from './main-thread.js';

/**
 * A gateway in a process of its own, which tells its parent how long the thread that serves everybody was held: the
 * most time that this thread ran between two ticks of a timer. Time on a processor, not of a clock, so that what else
 * runs on the machine does not count.
 */

const TICK_MS = 5;

let last = mainThreadMs();
let most = 0;
const note = (): void => {
  const now = mainThreadMs();
  most = Math.max(most, now - last);
  last = now;
};
setInterval(note, TICK_MS);

/** Of the upstream, whose time is not what is measured. */
const OSL_STATEMENT_TIMEOUT_MS = '3000';
const { caps } = settingsFrom({ OSL_STATEMENT_TIMEOUT_MS }, process.cwd());
const test = process.argv[2] === 'notes' ? await withNotes() : await startTestService({ settings: { caps } });
const catalogs = new Catalogs({ dir: join(tmpdir(), 'osl-test-catalog') });
const rest = await createHttpServer(test.service, {});
const wire = createPgFrontend(test.service, { catalogs });
const { port: restPort } = await rest.listen(0, '127.0.0.1');
const { port: wirePort } = await wire.listen(0, '127.0.0.1');

// A parent that is gone asks no more.
process.once('disconnect', () => process.exit(0));
const tokens = async (): Promise<{ token: string; root: string; filtered: string }> => ({
  token: await test.token('user:ann'),
  filtered: await test.token('user:eu'),
  root: await test.token('user:root', { roles: ['TENANT_ADMIN'] }),
});

process.on('message', (message: 'reset' | 'held' | 'tokens' | 'end') => {
  if (message === 'end') {
    void close();
    return;
  }
  if (message === 'tokens') {
    void tokens().then((fresh) => process.send?.(fresh));
    return;
  }
  note();
  if (message === 'held') process.send?.({ held: most });
  else {
    most = 0;
    process.send?.({ held: 0 });
  }
});

/** A facet of the offline model, with as many passages as one question may have, and more. */
async function withNotes(): Promise<TestService> {
  const notes = await startTestService({
    manifest: vectorsManifest('{ max_top_k: 1000 }').replace('    embedding: { model: toy }\n', ''),
    policy: VECTORS_POLICY,
    script: vectorsScript(NOTES),
    schema: 'press',
    embedded: true,
  });
  const { content } = settingsFrom({}, process.cwd());
  const { open, service } = notes;
  await indexContent(service.model().manifest, open.databases, content, [], () => undefined);
  return notes;
}

async function close(): Promise<void> {
  await wire.stop();
  await rest.close(1_000);
  await catalogs.close();
  await test.close();
  process.exit(0);
}

process.send?.({ restPort, wirePort });
