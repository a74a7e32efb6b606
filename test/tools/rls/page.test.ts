import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { parse, stringify } from 'yaml';
import { NO_NATIVE, startNativePostgres, urlAs } from '../../support/native-postgres.js';
import { osl, ROOT, Server, temporary } from '../cli/support.js';
import { rowSecurityDatabase } from './row-security-database.js';

/** The example of docs/from-row-security.md, run as it is written but for the names of roles, which a server has once. */

const PAGE = readFileSync(join(ROOT, 'docs', 'from-row-security.md'), 'utf8');
const blocks = (language: string): readonly string[] =>
  [...PAGE.matchAll(new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``, 'g'))].map(([, text = '']) => text);

t.setTimeout(120_000);
const postgres = await startNativePostgres();
if (postgres === null) t.test('the example of the page', { skip: NO_NATIVE }, async () => undefined);
else {
  const { mark, admin } = await rowSecurityDatabase(postgres, ['web', 'reader', 'other']);
  const [web, reader] = [`web_${mark}`, `reader_${mark}`];

  t.test('from a database with row security to a governed answer', async (t) => {
    const [database = ''] = blocks('sql');
    await admin.query(database.replaceAll(/\bweb\b/g, web));
    const cwd = temporary();
    const flags = ['--url', postgres.url, '--schema', 'app', '--role', web];
    const imported = await osl(['rls', 'import', 'shop', ...flags, '--reader', reader], { cwd });
    t.equal(imported.code, 0, imported.stderr);
    t.match(imported.stderr, /sub: claim sub/);
    const policyFile = join(cwd, 'shop', 'policy.yaml');
    const policy = parse(readFileSync(policyFile, 'utf8'));
    const [shown = '', subjects = ''] = blocks('yaml').map((text) => text.replaceAll(/\bweb\b/g, web));
    t.match(policy, parse(shown), 'the policy on the page');
    t.match(
      readFileSync(policyFile, 'utf8').match(/# by policy .*/g),
      ['# by policy me', '# by policy team', '# by policy team'],
      'each grant names its policy',
    );
    await admin.query(readFileSync(join(cwd, 'shop', 'reader.sql'), 'utf8').replace('choose one', 'osl'));
    writeFileSync(policyFile, stringify({ ...policy, ...parse(subjects) }));
    const env = { DATABASE_URL: urlAs(postgres.url, reader, 'osl'), OSL_HTTP_PORT: '0', OSL_PG_PORT: '0' };
    const shop = join(cwd, 'shop');
    const files = ['--manifest', join(shop, 'manifest.yaml'), '--policy', policyFile];
    const server = new Server(['serve', '--json', ...files], join(shop, '.osl'), env);
    t.teardown(() => server.signal('SIGKILL'));
    await server.said('"event":"listening"');
    const query = 'select id, body from note order by id';
    const asked = await osl(['query', '--subject', 'user:ann', '--json', query], { cwd: shop });
    t.equal(asked.code, 0, asked.stderr);
    t.match(JSON.parse(asked.stdout), { rows: [{ id: 1 }, { id: 3 }] });
    t.equal(JSON.parse(asked.stdout).rows.length, 2);
    const compare = (more: readonly string[] = []): ReturnType<typeof osl> =>
      osl(['rls', 'compare', 'shop', '--url', postgres.url, '--json', ...more], { cwd, env });
    const same = await compare();
    t.equal(same.code, 0, same.stderr);
    const { comparisons, callers } = JSON.parse(same.stdout);
    t.ok(callers > 1);
    t.ok(
      comparisons.every(({ result }: { result: string }) => result === 'equal'),
      same.stdout,
    );
    t.ok(comparisons.some(({ database }: { database: number }) => database === 2));
    const ofStranger = comparisons.filter(
      ({ caller }: { caller: string }) => caller === `${web} with values of no row`,
    );
    t.match(ofStranger, [
      { entity: 'member', database: 0, gateway: 0 },
      { entity: 'note', database: 0, gateway: 0 },
    ]);
    const sampled = await compare(['--sample-rows', '2']);
    t.ok(
      JSON.parse(sampled.stdout).comparisons.every(
        ({ result, database }: { result: string; database: number }) => result === 'equal' && database <= 2,
      ),
      sampled.stdout,
    );
    const prove = (more: readonly string[] = []): ReturnType<typeof osl> =>
      osl(['rls', 'prove', 'shop', ...flags, ...more], { cwd });
    const proved = await prove();
    t.match(proved, { code: 0, stdout: /^2 proofs: 2 equal, 0 narrower, 0 wider, 0 different, 0 unknown$/m });
    // A policy that shows too much, and one that shows too little.
    const grants = policy.roles[web].grants;
    for (const [result, changed, code] of [
      ['wider', grants.map(({ rows, ...grant }: { rows: string }) => grant), 1],
      ['narrower', grants.slice(0, 2), 0],
    ] as const) {
      writeFileSync(policyFile, stringify({ ...policy, roles: { [web]: { grants: changed } } }));
      const found = await compare();
      t.equal(found.code, code, result);
      t.ok(
        JSON.parse(found.stdout).comparisons.some((one: { result: string }) => one.result === result),
        result,
      );
    }
    // One that shows another row than the database, and no member.
    const otherGrants = [{ on: 'note', columns: ['id', 'body'], rows: 'id = 2' }];
    writeFileSync(policyFile, stringify({ ...policy, roles: { [web]: { grants: otherGrants } } }));
    const sub = '11111111-1111-4111-8111-111111111111';
    writeFileSync(join(cwd, 'callers.yaml'), stringify([{ role: web, claims: { sub } }]));
    const both = await compare(['--callers', 'callers.yaml']);
    const results = new Map<string, object>(
      JSON.parse(both.stdout).comparisons.map((one: { entity: string }) => [one.entity, one]),
    );
    t.equal(both.code, 1);
    t.match(results.get('note'), { result: 'differs', more: '["2"]', less: '["1"]' }, both.stdout);
    t.match(results.get('member'), { result: 'narrower', database: 1, gateway: 0, more: null });
    const refuted = await prove(['--json']);
    t.equal(refuted.code, 1, refuted.stderr);
    t.match(JSON.parse(refuted.stdout).proofs, [{ verdict: 'narrower' }, { verdict: 'differs' }]);
    const { results: sarif } = JSON.parse((await prove(['--sarif'])).stdout).runs[0];
    const place = { artifactLocation: { uri: 'shop/policy.yaml' }, region: { startLine: Number } };
    t.match(sarif, [
      { ruleId: 'narrower_than_row_security', level: 'warning' },
      { ruleId: 'differs_from_row_security', level: 'error', message: { text: /the gateway alone shows/ } },
    ]);
    for (const { locations } of sarif) t.match(locations, [{ physicalLocation: place }]);
    writeFileSync(policyFile, stringify({ ...policy, roles: { [web]: { grants: grants.slice(0, 2) } } }));
    writeFileSync(join(cwd, 'callers.yaml'), stringify([{ role: web, claims: { sub: 'no uuid' } }]));
    const named = await compare(['--callers', 'callers.yaml']);
    t.match(JSON.parse(named.stdout), { callers: 1, comparisons: [{ result: 'unknown', reason: /22P02/ }] });
    writeFileSync(join(cwd, 'callers.yaml'), stringify([{ role: 'nobody' }, { role: web }]));
    const stranger = await compare(['--callers', 'callers.yaml']);
    t.match(stranger, { code: 2, stderr: `the policy has no role nobody; it has ${web}` });
    const other = `other_${mark}`;
    await admin.query(`create role ${other} login noinherit; grant ${web} to ${other}`);
    const blind = ['rls', 'compare', 'shop', '--url', urlAs(postgres.url, other, '')];
    t.match(await osl(blind, { cwd, env }), {
      code: 2,
      stderr: /42501\); give --url a login that sees all rows/,
    });
    const again = await osl(['rls', 'import', 'shop', ...flags], { cwd });
    t.match(again, { code: 2, stderr: /would be overwritten/ });
  });
}
