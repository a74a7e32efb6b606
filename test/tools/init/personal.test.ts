import { test } from 'tap';
import { lookOf, tenantRank } from '../../../cli/proposal/index.js';

test('columns by their names: personal, secret or plain', async (t) => {
  const cases: readonly (readonly [table: string, column: string, look: string])[] = [
    ['customer', 'email', 'personal'],
    ['order', 'ContactEmail', 'personal'],
    ['x', 'HOME_PHONE', 'personal'],
    ['x', 'dateOfBirth', 'personal'],
    ['x', 'born_at', 'personal'],
    ['x', 'tax_id', 'personal'],
    ['users', 'name', 'personal'],
    ['product', 'name', 'plain'],
    ['users', 'passwordHash', 'secret'],
    ['integration', 'API_KEY', 'secret'],
    ['x', 'email_verified', 'plain'],
    ['x', 'address_id', 'plain'],
    ['x', 'token_count', 'plain'],
    ['x', 'stage', 'plain'],
    ['x', 'shipping', 'plain'],
    ['x', 'package', 'plain'],
    ['x', 'zipper', 'plain'],
    ['x', 'status', 'plain'],
    ['x', '', 'plain'],
  ];
  for (const [table, column, look] of cases) t.equal(lookOf(table, column), look, `${table}.${column}`);
});

test("a tenant's column by its name", async (t) => {
  for (const name of ['tenant_id', 'orgId', 'workspace', 'account_id']) t.not(tenantRank(name), null, name);
  for (const name of ['company', 'client', 'organization_name', 'id', 'tenancy'])
    t.equal(tenantRank(name), null, name);
});
