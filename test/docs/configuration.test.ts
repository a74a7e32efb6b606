import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'tap';
import { program } from '../../cli/program.js';
import { SECTIONS, SETTINGS, settingsReader } from '../../src/service/settings/table.js';
import type { SettingDefinition } from '../../src/service/settings/types.js';
import { settingsFrom } from '../../src/service/settings.js';

/** docs/configuration.md is made from the table of settings, which is all that the product reads of its environment. */

const NAME = /\bOSL_[A-Z0-9_]*[A-Z0-9]\b/g;
/** Settings of tests, benchmarks and generators: docs/testing.md. */
const OF_TESTS = /^OSL_(TEST|BENCH|WRITE|GOLDEN|SHARED|FUZZ|NIGHTLY)(_|$)/;
/** Names that the reader of an example chooses, and what follows the name of a connector's variable. */
const OF_READERS = /^OSL_(LINEAGE_SECRET|POSTGRES_URL(_SYSTEM)?(_FILE)?)$/;
const AGAIN = 'OSL_WRITE_DOCS=1 node dist/test/docs/configuration.test.js';
const PAGE = join(process.cwd(), 'docs', 'configuration.md');
const serve = (await program()).commands.find((c) => c.name() === 'serve');

/** Files that read `process.env` without the table, and what for. */
const OTHER_READERS: ReadonlyMap<string, string> = new Map([
  ['src/content/http.ts', 'URLs and keys of models, by the names that the manifest gives'],
  ['src/service/settings/table.ts', 'the settings'],
  ['src/service/audit.ts', 'credentials of an object store, by the names of AWS'],
  ['cli/audit/log.ts', 'the same'],
  ['src/service/lineage/config/secrets.ts', 'secrets, by the names that files of the operator give'],
  ...[
    'src/service/data-epochs.ts',
    'src/service/engines.ts',
    'src/service/indexing/index-content.ts',
    'src/service/lineage.ts',
    'src/service/row-security.ts',
    'cli/commands/discover.ts',
    'cli/doctor/database.ts',
    'cli/doctor/run.ts',
    'cli/doctor/standbys.ts',
    'cli/init/connect.ts',
    'cli/init/run.ts',
    'cli/rls/speed/run.ts',
    'cli/row-security.ts',
  ].map((file) => [file, 'URLs of databases, by the names that the manifest gives'] as const),
  ['cli/rls/database.ts', 'the URL of the database to check'],
  ['cli/commands/psql.ts', 'variables of libpq'],
  ['cli/doctor/run.ts', 'names that the table does not have, and values as they are written'],
  ['cli/flags.ts', 'the whole environment, for the table'],
  ['cli/login/store.ts', 'the folder of the user'],
  ['cli/serve/invocation.ts', 'the name by which npm started the program'],
  ['cli/commands/query.ts', 'the terminal'],
]);

/** Variables whose names stand in the code outside the table, for messages and as defaults of what the manifest names. */
const WITHOUT_TABLE = /\benv(ironment)?\[['"`]OSL_/;

function page(): string {
  const sections = SECTIONS.map(({ title, text, settings }) => {
    const rows = Object.entries<SettingDefinition<unknown>>(settings).map(([name, setting]) =>
      rowOf(name, setting),
    );
    const table = ['| setting | value | default | |', '| --- | --- | --- | --- |', ...rows].join('\n');
    return [`## ${title}`, ...(text === '' ? [] : [text]), table].join('\n\n');
  });
  const flags = (serve?.options ?? []).map((o) => `| \`${o.flags}\` | ${o.description} |`);
  const table = ['| flag | |', '| --- | --- |', ...flags].join('\n');
  return `${[INTRODUCTION, ...sections, '## Flags of `osl serve`', table].join('\n\n')}\n`;
}

const EXAMPLE = `OSL_MANIFEST=/etc/osl/manifest.yaml
OSL_POLICY=/etc/osl/policy.yaml
OSL_DATA_DIR=/var/lib/osl
OSL_POSTGRES_URL=postgres://osl_reader:secret@db.example:5432/shop?sslmode=verify-full
OSL_HOST=0.0.0.0
OSL_TLS_CERT=/etc/osl/tls.crt
OSL_TLS_KEY=/etc/osl/tls.key
OSL_PUBLIC_KEYS=/etc/osl/issuer.pem`;

const INTRODUCTION = `# Configuration

OSL Gateway reads its settings from environment variables. Flags of \`osl serve\` override the most common ones. There is no settings file; the [manifest](manifest.md) describes the data, the [policy](policy.md) who may see it.

Nothing is required to try it: \`osl demo\` needs no setting, and \`osl serve\` finds \`manifest.yaml\` and \`policy.yaml\` in the working directory. For a server that other machines reach, start with these:

\`\`\`sh
# /etc/osl/osl.env
${EXAMPLE}
\`\`\`

\`\`\`sh
set -a; . /etc/osl/osl.env; set +a
osl config check    # checks settings, files, certificates and databases
osl serve
\`\`\`

REST and MCP then listen on port 8642, the Postgres protocol on port 15432. \`osl config list\` prints every setting with its value, except secrets. An empty variable counts as not set. A change takes effect at the next start, except for what a [reload](operations.md#reload) reads again.

<!-- Written from src/service/settings/table.ts by \`${AGAIN}\`. -->`;

function rowOf(name: string, { type, default: initial, description }: SettingDefinition<unknown>): string {
  const takes = type.isList ? `${type.takes}, separated by commas` : type.takes;
  return `| \`${name}\` | ${takes} | ${initial === null || initial === '' ? '' : `\`${initial}\``} | ${description} |`;
}

/** Files below `folder` with their texts, by their paths from the root. */
function* filesIn(folder: string, endings: RegExp): Generator<readonly [string, string]> {
  for (const entry of readdirSync(join(process.cwd(), folder), { recursive: true, withFileTypes: true })) {
    const file = join(entry.parentPath, entry.name);
    if (entry.isFile() && endings.test(entry.name))
      yield [file.slice(process.cwd().length + 1), readFileSync(file, 'utf8')];
  }
}

test('docs/configuration.md is what the table of settings and the flags of osl serve say', (t) => {
  if (process.env['OSL_WRITE_DOCS'] === '1') writeFileSync(PAGE, page());
  t.equal(readFileSync(PAGE, 'utf8'), page(), `run ${AGAIN}`);
  t.end();
});

test('the environment is read through the table, but for the files listed here', (t) => {
  const others = new Set<string>();
  for (const room of ['src', 'audit', 'cli', 'interchange', 'policy', 'wire', 'compiler/src', 'bin'])
    for (const [file, text] of filesIn(room, /\.(ts|js)$/)) {
      if (/\bprocess\.env\b/.test(text)) others.add(file);
      t.notMatch(text, WITHOUT_TABLE, `${file} reads a setting past the table`);
    }
  t.strictSame([...others].sort(), [...OTHER_READERS.keys()].sort());
  t.end();
});

test('every name of a setting in the product and its documents is in the table', (t) => {
  const known = (name: string) => name in SETTINGS || OF_TESTS.test(name) || OF_READERS.test(name);
  for (const [room, endings] of [
    ['src', /\.ts$/],
    ['audit', /\.ts$/],
    ['cli', /\.ts$/],
    ['interchange', /\.ts$/],
    ['policy', /\.ts$/],
    ['wire', /\.ts$/],
    ['compiler/src', /\.ts$/],
    ['docs', /\.md$/],
  ] as const)
    for (const [file, text] of filesIn(room, endings))
      for (const [name] of text.matchAll(NAME)) t.ok(known(name), `${name} in ${file}`);
  t.end();
});

test('a setting that is unset, empty or written as its default is the same', (t) => {
  const unset = settingsReader({}, '/');
  for (const [name, { default: initial }] of Object.entries(SETTINGS)) {
    const key = name as keyof typeof SETTINGS;
    t.strictSame(settingsReader({ [name]: '' }, '/')(key), unset(key), `${name} empty`);
    if (initial !== null && initial !== '')
      t.strictSame(settingsReader({ [name]: initial }, '/')(key), unset(key), `${name}=${initial}`);
  }
  t.ok(Object.isFrozen(SETTINGS) && Object.values(SETTINGS).every(Object.isFrozen));
  t.end();
});

test('a value of the wrong type names the setting, what it takes, and the value unless it may be a secret', (t) => {
  const fault = (name: keyof typeof SETTINGS, value: string): string => {
    try {
      settingsReader({ [name]: value }, '/')(name);
      return '';
    } catch (error) {
      return String(error);
    }
  };
  for (const [name, value, message] of [
    ['OSL_HTTP_PORT', '65536', 'OSL_HTTP_PORT must be a whole number from 0 to 65535, not `65536`'],
    ['OSL_HTTP_PORT', ' ', 'OSL_HTTP_PORT must be a whole number from 0 to 65535, not ` `'],
    ['OSL_HTTP_PORT', '8,642', 'OSL_HTTP_PORT must be a whole number from 0 to 65535, not `8,642`'],
    ['OSL_WORKERS', 'all', 'OSL_WORKERS must be auto or a whole number from 1 to 64, not `all`'],
    [
      'OSL_DRIFT_SECONDS',
      '1.5',
      'OSL_DRIFT_SECONDS must be a whole number of seconds from 0 to 86400, not `1.5`',
    ],
    ['OSL_MAX_ROW_MIB', '0', 'OSL_MAX_ROW_MIB must be a whole number of MiB from 1 to 1024, not `0`'],
    ['OSL_CONSOLE', 'yes', 'OSL_CONSOLE must be off, on or admin, not `yes`'],
    ['OSL_HTTP_TLS', 'true', 'OSL_HTTP_TLS must be on or off, not `true`'],
    ['OTEL_TRACES_SAMPLER_ARG', '2', 'OTEL_TRACES_SAMPLER_ARG must be a number from 0 to 1, not `2`'],
    [
      'OSL_METRICS_FROM',
      '10.0.0.0/8, x',
      'OSL_METRICS_FROM must name addresses or networks such as 10.0.0.0/8, not `x`',
    ],
    ['OSL_ALARM_URL', 'ftp://h/secret', 'OSL_ALARM_URL must be an http or https URL'],
  ] as const)
    t.equal(fault(name, value), `StartProblem: ${message}`);
  t.end();
});

test('the example of the first page is read without a fault, and every name in it is a setting', (t) => {
  const env = Object.fromEntries(EXAMPLE.split('\n').map((line) => line.split(/=(.*)/s)));
  for (const name of Object.keys(env)) t.ok(name in SETTINGS, name);
  const settings = settingsFrom(env, '/');
  t.match(settings, { host: '0.0.0.0', dataDir: '/var/lib/osl', httpPort: 8642, localTokens: false });
  t.end();
});
