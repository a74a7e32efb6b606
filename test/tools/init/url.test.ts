import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'tap';
import { connectorUrl, describeConnectFault, withoutPassword } from '../../../src/service/connector-url.js';
import { temporary } from '../cli/support.js';

test("a connector's URL: the variable, else the file that NAME_FILE names", async (t) => {
  const file = join(temporary(), 'url');
  writeFileSync(file, 'postgres://in/file\n');
  t.equal(await connectorUrl({ A: 'postgres://in/env', A_FILE: file }, 'A'), 'postgres://in/env');
  t.equal(await connectorUrl({ A: '', A_FILE: file }, 'A'), 'postgres://in/file');
  t.equal(await connectorUrl({}, 'A'), null);
  await t.rejects(connectorUrl({ A_FILE: `${file}.none` }, 'A'), /cannot be read \(ENOENT\)/);
  writeFileSync(file, '\n');
  await t.rejects(connectorUrl({ A_FILE: file }, 'A'), /is empty/);
});

test('what is shown of a URL holds no password', async (t) => {
  t.equal(withoutPassword('postgres://me:s%40cret@host:1/db?password=x'), 'postgres://me@host:1/db');
  t.equal(withoutPassword('nonsense'), 'a URL that cannot be read');
  const refused = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
  t.equal(describeConnectFault(new AggregateError([refused])), 'nothing listens there');
});
