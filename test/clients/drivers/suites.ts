/**
 * The drivers' own tests, against a gateway: `node dist/test/clients/drivers/suites.js [SUITE …]`, one of the nightly steps.
 *
 * Each test of a suite runs by itself, so that one which panics takes no other along. What fails must stand in
 * `expected-failures.ts` with its reason; what stands there and passes is named, so that it can go. A suite that is not
 * installed is named too. Ends with 1 where something fails that is not expected.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expectedFailure } from './expected-failures.js';
import { type Gateway, run, startGateway } from './support.js';

interface Suite {
  readonly name: string;
  /** The Debian package that has the driver's source, tests included. */
  readonly debian: string;
  readonly package: string;
}

const SOURCES = '/usr/share/gocode/src';

const SUITES: readonly Suite[] = [
  { name: 'lib/pq', debian: 'golang-github-lib-pq-dev', package: 'github.com/lib/pq' },
  { name: 'pgx 4', debian: 'golang-github-jackc-pgx-v4-dev', package: 'github.com/jackc/pgx/v4' },
  { name: 'pgconn', debian: 'golang-github-jackc-pgconn-dev', package: 'github.com/jackc/pgconn' },
];

/** Suites that cannot be installed as a package, so that they never run here. */
const MISSING = [
  "psycopg's tests: no package for machines has them, and the source package of Debian 12 is not to be had",
  "node-postgres' tests: its npm package has none",
  "pgx 5's tests: Debian 12 has no package of it",
];

const GO = {
  GO111MODULE: 'off',
  GOPATH: '/usr/share/gocode',
  GOFLAGS: '',
  GOCACHE: join(tmpdir(), 'osl-go-cache'),
};
const SUBJECT = 'user:ann';

type Result = 'passed' | 'failed' | 'skipped';

async function environmentOf(gateway: Gateway): Promise<NodeJS.ProcessEnv> {
  const env = await gateway.environment(SUBJECT);
  const { PGPORT = '', PGPASSWORD = '' } = env;
  const url = `postgres://${encodeURIComponent(SUBJECT)}:${PGPASSWORD}@127.0.0.1:${PGPORT}/osl?sslmode=disable`;
  return {
    ...env,
    ...GO,
    PGSSLMODE: 'disable',
    PGX_TEST_DATABASE: url,
    PGX_TEST_CONN_STRING: url,
    PGX_TEST_TCP_CONN_STRING: url,
  };
}

async function suiteRun(
  gateway: Gateway,
  suite: Suite,
): Promise<ReadonlyMap<string, readonly [Result, string]>> {
  const dir = mkdtempSync(join(tmpdir(), 'osl-suite-'));
  const binary = join(dir, 'tests');
  const source = join(SOURCES, suite.package);
  const results = new Map<string, readonly [Result, string]>();
  try {
    execFileSync('go', ['test', '-c', '-o', binary, suite.package], {
      env: { ...process.env, ...GO },
      stdio: 'inherit',
    });
    const listed = await run({ ...process.env, ...GO }, binary, ['-test.list', '.']);
    const tests = listed.out.split('\n').filter((line) => /^Test\w+$/.test(line) && line !== 'TestMain');
    for (const test of tests) {
      const env = await environmentOf(gateway);
      const args = ['-c', 'cd "$1" && shift && exec "$@"', '-', source, binary];
      const { out, err, code } = await run(env, 'bash', [
        ...args,
        '-test.run',
        `^${test}$`,
        '-test.v',
        '-test.timeout',
        '30s',
      ]);
      const said = `${out}\n${err}`;
      results.set(test, [code !== 0 ? 'failed' : /^--- SKIP/m.test(said) ? 'skipped' : 'passed', said]);
    }
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
  return results;
}

let total = 0;
let unexpected = 0;
const wanted = process.argv.slice(2);
const gateway = await startGateway();
for (const suite of SUITES) {
  if (wanted.length > 0 && !wanted.includes(suite.name)) continue;
  if (!existsSync(join(SOURCES, suite.package))) {
    console.log(`# ${suite.name}: not installed (${suite.debian}, golang-go)`);
    continue;
  }
  const results = await suiteRun(gateway, suite);
  total += results.size;
  const count = (which: Result): number => [...results.values()].filter(([r]) => r === which).length;
  let expected = 0;
  for (const [test, [result, said]] of results) {
    const reason = expectedFailure(suite.name, test);
    if (result === 'failed' && reason !== null) expected++;
    if (result === 'passed' && reason !== null)
      console.log(`# ${suite.name} ${test}: passes, and is said to fail`);
    if (result !== 'failed' || reason !== null) continue;
    unexpected++;
    console.log(`not ok ${suite.name} ${test}: fails\n${said.slice(0, 1_500)}`);
  }
  console.log(
    `# ${suite.name}: ${results.size} tests, ${count('passed')} passed, ${expected} failed as expected, ${count('failed') - expected} otherwise, ${count('skipped')} skipped`,
  );
}
for (const missing of MISSING) console.log(`# not had: ${missing}`);
await gateway.close();
console.log(`# { total: ${total}, pass: ${total - unexpected} }`);
process.exitCode = unexpected > 0 ? 1 : 0;
