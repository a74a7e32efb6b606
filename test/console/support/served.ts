import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Test } from 'tap';
import { mintToken } from '../../../policy/index.js';
import { tenantKeys } from '../../../src/service/keys.js';
import { files } from '../../service/operations/store.js';
import { type Place, served } from '../../service/operations/support.js';
import type { Server } from '../../tools/cli/support.js';
import type { Visit } from './browser.js';

/** A text that would be heard of if a page took it for markup, or for code. */
export const HOSTILE = '<img src=x onerror="hacked=1"><script>hacked=1</script>';

const POLICY = `version: 1
tenant: demo
subjects:
  user:analyst: { ceiling: [analyst] }
  user:admin: { ceiling: [analyst, auditor], admin: [TENANT_ADMIN] }
  user:guest: { ceiling: [] }
  agent:helper: { ceiling: [analyst] }
roles:
  analyst:
    grants:
      - { on: account, columns: [id, name], rows: 'name <> ''${HOSTILE}''' }
  auditor:
    grants:
      - { on: account, columns: "*", unmask: [pii] }
      - { on: big, columns: [id] }
masks: { pii: redact }
limits: { query: 1000, catalog: 1000, authoring: 1000, subject: [{ per: hour, rows: 1000 }] }
`;

const TESTS = `version: 1
data:
  db.shop.account: [{ id: 1, name: ann }]
tests:
  - name: 'analysts see names ${HOSTILE}'
    as: user:analyst
    ask: select name from osl.entities.account
    expect: { row_count: 1 }
  - name: one that fails
    as: user:analyst
    ask: select id from osl.entities.account
    expect: { rows: [{ id: '${HOSTILE}' }] }
claims:
  - name: 'analysts see no label ${HOSTILE}'
    never: { role: analyst, sees: big }
  - name: auditors see nothing
    never: { role: auditor, sees: big }
`;

/** `osl serve` with a console for admins, over a native Postgres with the tables of the small shop. */
export async function adminServer(
  t: Test,
  readerUrl: string,
  policy = POLICY,
): Promise<{ readonly server: Server; readonly place: Place; readonly origin: string }> {
  const place = files();
  writeFileSync(place.policy, policy);
  writeFileSync(join(dirname(place.policy), 'policy.test.yaml'), TESTS);
  const manifest = (await import('../../service/operations/store.js')).MANIFEST.replace(
    'name: { type: text } } }\n      shop.big',
    'name: { type: text, sensitivity: pii } } }\n      shop.big',
  );
  writeFileSync(place.manifest, manifest);
  const server = await served(t, place, { STORE_URL: readerUrl, OSL_CONSOLE: 'admin', OSL_ADMIN_PORT: '0' });
  return { server, place, origin: `http://127.0.0.1:${server.record().httpPort}` };
}

/** A token of the server's own key. */
export function tokenOf(
  { dataDir }: Place,
  chain: readonly string[],
  roles: readonly string[] = [],
  aclRoles: readonly string[] = ['analyst'],
  issuedAt?: number,
): Promise<string> {
  const claims = {
    ...{ tenant: 'demo', chain: [...chain], aclRoles: [...aclRoles], roles: [...roles] },
    ...(issuedAt !== undefined && { issuedAt }),
  };
  return mintToken(claims, { algorithm: 'HS256', secret: tenantKeys(dataDir).signing });
}

/** Signs in by pasting `token`, and goes to a screen. */
export async function enter(visit: Visit, origin: string, token: string, screen: string): Promise<void> {
  const { page } = visit;
  await page.goto(`${origin}/console/#/${screen}`);
  await page.getByRole('textbox', { name: 'Actor token' }).fill(token);
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
  await page.getByRole('navigation', { name: 'Screens' }).waitFor();
}
