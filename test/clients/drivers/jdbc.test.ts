import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import tap, { type Test, test } from 'tap';
import { generatedSql } from '../../../src/base/sql.js';
import { SHOP_POLICY } from '../../support/shop.js';
import { startBoth } from '../../surfaces/pg/support.js';
import { CUSTOMER_COLUMNS, ENDLESS, FILL, MANY, missing, TABLES } from './support.js';

/** The programs of `jdbc/`, compiled once and run in one JVM, before the gateway and before Postgres itself. */
const SOURCES = 'test/clients/drivers/jdbc';
const JAVA = '/usr/share/java';
const JAR = `${JAVA}/postgresql.jar`;
const POOL = ['HikariCP', 'slf4j-api', 'slf4j-nop'].map((name) => `${JAVA}/${name}.jar`);
const hasPool = POOL.every((jar) => existsSync(jar));
/** They run for a second or two: the quick compiler alone. */
const SHORT_LIVED = ['-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC'];
const COMPILER = SHORT_LIVED.map((flag) => `-J${flag}`);
const ZONES = ['Europe/Berlin', 'America/St_Johns'];

const both = await startBoth();
tap.setTimeout(600_000);
tap.teardown(() => both?.close());

const skip =
  both === null
    ? 'no native Postgres to compare with'
    : existsSync(JAR)
      ? missing('a Java compiler', ['javac', '-version'])
      : 'pgjdbc is not installed here';

const prefixed = (prefix: string, env: NodeJS.ProcessEnv): NodeJS.ProcessEnv =>
  Object.fromEntries(
    Object.entries(env).flatMap(([name, value]) => (/^PG/.test(name) ? [[prefix + name, value]] : [])),
  );

/** Lines by program; what each program says of a fault goes to stderr as well. */
async function programs(): Promise<ReadonlyMap<string, readonly string[]>> {
  if (both === null || skip !== false) return new Map();
  await both.shop.engine.system.script(generatedSql(FILL));
  const dir = mkdtempSync(join(tmpdir(), 'osl-jdbc-'));
  tap.teardown(() => rmSync(dir, { recursive: true, force: true }));
  const path = [dir, JAR, ...POOL].join(':');
  const files = readdirSync(SOURCES).filter((f) => hasPool || f !== 'Pooled.java');
  execFileSync('javac', [...COMPILER, '-cp', path, '-d', dir, ...files.map((f) => join(SOURCES, f))], {
    stdio: 'inherit',
  });
  const env = {
    ...process.env,
    ...prefixed('ANN_', await both.gateway('user:ann')),
    ...prefixed('ADA_', await both.gateway('user:ada')),
    ...prefixed('DIRECT_', both.direct),
    DIRECT_SCHEMA: 'entities',
    OSL_ENDLESS: ENDLESS,
    OSL_ZONES: ZONES.join(' '),
    ...(hasPool ? { OSL_HIKARI: '1' } : {}),
  };
  const child = spawn('java', [...SHORT_LIVED, '-cp', path, 'All'], {
    env,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  let said = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    said += chunk;
    if (said.endsWith('ready\n')) void showFewerColumns().then(() => child.stdin.write('\n'));
  });
  await new Promise((resolve) => child.once('close', resolve));
  const parts = said.split(/^== /m).map((part) => part.trimEnd().split('\n'));
  return new Map(parts.map(([name = '', ...lines]) => [name, lines]));
}

async function showFewerColumns(): Promise<void> {
  if (both === null) return;
  const narrow = SHOP_POLICY.replaceAll('on: customer, columns: "*"', 'on: customer, columns: [id, name]');
  writeFileSync(both.shop.policyFile, narrow);
  await both.shop.open.reload();
}

const said = await programs();

/** Reads the output of a program, one JSON object a line, by step. */
function stepsOf(name: string): ReadonlyMap<string, unknown> {
  const lines = (said.get(name) ?? []).map((line) => JSON.parse(line) as { step: string; value: unknown });
  return new Map(lines.map((l) => [l.step, l.value]));
}

function sameOfBoth(t: Test, name: string, lines: number): readonly string[] {
  const [ours, theirs] = [said.get(`ADA_${name}`) ?? [], said.get(`DIRECT_${name}`) ?? []];
  t.equal(theirs.length, lines);
  t.strictSame(ours, theirs);
  return ours;
}

test('pgjdbc', { skip }, (t) => {
  t.strictSame(Object.fromEntries(stepsOf('client')), {
    tables: TABLES,
    columns: CUSTOMER_COLUMNS,
    primary: ['id'],
    foreign: ['customer'],
    product: 'PostgreSQL',
    parameters: [['Ada', '[redacted]']],
    stream: MANY,
    cancel: '57014',
    error: '42703',
    write: '25006',
    after: 1,
    valid: 1,
  });
  t.end();
});

const skipPool = skip === false && !hasPool ? 'HikariCP is not installed here' : skip;

test('pgjdbc in a pool of HikariCP', { skip: skipPool }, (t) => {
  const [repeatable, committed] = ['repeatable read', 'read committed'];
  t.strictSame(stepsOf('pool').get('pool'), [
    ...['4', '42703', repeatable],
    ...['4', '42703', committed],
    ...['4', '42703', repeatable, '22012'],
    ...['4', repeatable],
  ]);
  t.end();
});

test('pgjdbc is told the types that it declares', { skip }, (t) => {
  const lines = sameOfBoth(t, 'types', 34);
  const wrong = lines.filter((line) => /^(?!.* described).*[^1]$/.test(line));
  t.same(wrong, [], 'each run of a statement gives the same rows');
  t.end();
});

for (const zone of ZONES)
  test(`pgjdbc in ${zone}`, { skip }, (t) => {
    t.equal(sameOfBoth(t, zone, 17)[0], zone);
    t.end();
  });

test('pgjdbc prepares a statement again whose columns have changed', { skip }, (t) => {
  t.strictSame(said.get('reloaded'), ['ready', '2 Ada']);
  t.end();
});
