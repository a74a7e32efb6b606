import t, { test } from 'tap';
import { startRest } from '../../surfaces/rest/fixture.js';
import { osl } from './support.js';

t.setTimeout(600_000);
const rest = await startRest();

/** The command as `subject` against the test's server. */
async function run(subject: string, args: readonly string[], roles: readonly string[] = []) {
  const token = await rest.test.token(subject, { roles });
  return osl([...args, '--server', `http://127.0.0.1:${rest.port}`], { env: { OSL_TOKEN: token } });
}

test('what there is, on a terminal', async (t) => {
  t.teardown(() => rest.close());

  await t.test('osl schema lists what the caller may name', async (t) => {
    const { code, stdout } = await run('user:eu', ['schema']);
    t.equal(code, 0);
    const names = stdout
      .trimEnd()
      .split('\n')
      .slice(2)
      .map((line) =>
        line
          .split('|')
          .map((cell) => cell.trim())
          .slice(0, 2)
          .join(' '),
      );
    t.strictSame(names, ['entity customer', 'entity order', 'metric revenue', 'relationship order_customer']);
  });

  await t.test('osl schema NAME shows one thing', async (t) => {
    const { code, stdout } = await run('user:ann', ['schema', 'customer']);
    t.equal(code, 0);
    t.match(stdout, /^osl\.entities\.customer\n/);
    t.match(stdout, / email +\| text +\| all/);
    t.match(stdout, 'joins on: id');
    t.match(stdout, '  select id, name, email, tax_no from osl.entities.customer limit 10');
    const metric = await run('user:ann', ['schema', 'revenue']);
    t.match(metric.stdout, /^osl\.metrics\.revenue\n(?:.*\n)?shown as: currency EUR\n/);
    const hidden = await run('user:eu', ['schema', 'product']);
    t.strictSame([hidden.code, hidden.stderr], [1, 'error: the schema shows nothing named `product`\n']);
  });

  await t.test('osl schema --full is for admins', async (t) => {
    const refused = await run('user:ann', ['schema', '--full']);
    t.equal(refused.code, 1);
    t.match(refused.stderr, 'error E2101');
    const full = await run('user:root', ['schema', '--full', '--json'], ['TENANT_ADMIN']);
    t.equal(JSON.parse(full.stdout).version, rest.test.service.model().manifest.version);
  });

  await t.test('osl map draws the graph', async (t) => {
    const { code, stdout } = await run('user:ann', ['map']);
    t.equal(code, 0);
    t.match(stdout, 'entity order (id) customer_id, region, quantity, amount, placed_at, note | revenue\n');
    t.match(stdout, 'link order_customer (n1) order.customer_id - customer.id\n');
    t.match(stdout, 'link line (nn) order.id - product.id\n');
    const json = await run('user:ann', ['map', '--json']);
    t.strictSame(JSON.parse(json.stdout).bridges, ['line']);
  });

  await t.test('osl resolve finds, or fails', async (t) => {
    const found = await run('user:ann', ['resolve', 'customers']);
    t.equal(found.code, 0);
    t.match(found.stdout, / osl\.entities\.customer +\| entity +\| +0\.8 \| name/);
    const none = await run('user:ann', ['resolve', 'zebra & co']);
    t.equal(none.code, 1);
    const json = await run('user:ann', ['resolve', 'zebra & co', '--json']);
    t.strictSame(JSON.parse(json.stdout), { term: 'zebra & co', matches: [] });
  });
});
