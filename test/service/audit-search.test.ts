import { dirname } from 'node:path';
import t from 'tap';
import type { AuditRecord } from '../../policy/audit/index.js';
import { searchAudit } from '../../src/service/audit-search.js';
import { settingsFrom } from '../../src/service/settings.js';
import { startRest } from '../surfaces/rest/fixture.js';

t.test('a server gives records of its own log, and records first who asked', async (t) => {
  const rest = await startRest();
  t.teardown(() => rest.close());
  await rest.ask('user:ann', { osql: 'select id from osl.entities.customer' });
  const settings = settingsFrom({}, '/', { dataDir: dirname(rest.test.auditDir) });
  const { audit, tenant } = rest.test.service;
  const reader = { requestId: 'r-1', tenant, subject: 'user:root', chain: ['user:root'] };
  const found: AuditRecord[] = [];
  for await (const record of searchAudit(settings, audit, { object: 'customer' }, reader)) found.push(record);
  t.ok(found.length > 0 && found.every(({ subject }) => subject === 'user:ann'));
  const [reading] = await rest.test.records('r-1');
  t.match(reading, { action: 'audit.read', subject: 'user:root', detail: /"object":"customer"/ });
});
