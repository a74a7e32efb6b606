import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'tap';
import { StartProblem } from '../../src/base/start-problem.js';
import { settingsFrom } from '../../src/service/settings.js';
import { program } from '../../src/tools/cli/program.js';
import { SECTIONS, type Variable } from './configuration.js';

/** docs/configuration.md is written from the table beside this file, which is held to the code here. */

const NAME = /\bOSL_[A-Z0-9_]*[A-Z0-9]\b/g;
const ROOMS = ['src', 'policy', 'wire', 'compiler/src', 'bin'];
/** Of tests, benches and generators: docs/testing.md. */
const OF_TESTS = /^OSL_(TEST|BENCH|WRITE|GOLDEN|SHARED|FUZZ|NIGHTLY)(_|$)/;
/** Names that the reader of an example chooses, and what follows the name of a connector's variable. */
const OF_READERS = /^OSL_(LINEAGE_SECRET|POSTGRES_URL(_SYSTEM)?(_FILE)?)$/;
const AGAIN = 'OSL_WRITE_DOCS=1 node dist/test/docs/configuration.test.js';
const commands = (await program()).commands;
const PAGE = join(process.cwd(), 'docs', 'configuration.md');

const documented = new Map<string, Variable>(SECTIONS.flatMap((s) => Object.entries(s.variables)));

/** The code's word for what `name` takes: what it says of nonsense. Null where it takes any text. */
function saidOf(name: string): string | null {
  try {
    settingsFrom({ [name]: ' non sense ' }, '/');
    return null;
  } catch (error) {
    if (!(error instanceof StartProblem)) throw error;
    return /^\S+ must be (.*), not /.exec(error.message)?.[1] ?? null;
  }
}

function rowOf(name: string, { what, takes, default: value }: Variable): string {
  const said = takes ?? saidOf(name) ?? '';
  const initial = value === undefined || value === '' ? '' : `\`${value}\``;
  return `| \`${name}\` | ${said.replace(/\d{4,}/g, digits)} | ${initial} | ${what} |`;
}

function digits(number: string): string {
  return Number(number).toLocaleString('en-US');
}

function page(): string {
  const sections = SECTIONS.map(({ title, text, variables }) => {
    const rows = Object.entries(variables).map(([name, variable]) => rowOf(name, variable));
    const table = ['| variable | takes | default | |', '| --- | --- | --- | --- |', ...rows].join('\n');
    return [`## ${title}`, ...(text === '' ? [] : [text]), table].join('\n\n');
  });
  const flags = serveOptions().map((o) => `| \`${o.flags}\` | ${o.description} |`);
  return `${[
    '# Configuration',
    `What a process is told at its start: by environment variables, and by the flags of \`osl serve\`. There is no other file of settings; [the manifest](manifest.md) and [the policy](policy.md) say what is served and to whom. A change takes a restart, but for what [a reload](operations.md#reload) takes up. Written by \`${AGAIN}\` from the code.`,
    ...sections,
    '## Flags of `osl serve`',
    ['| flag | |', '| --- | --- |', ...flags].join('\n'),
  ].join('\n\n')}\n`;
}

function serveOptions() {
  const serve = commands.find((c) => c.name() === 'serve');
  return serve?.options ?? [];
}

/** Names of variables in the files below `room`, with a file that has each. */
function namesIn(room: string, endings: RegExp): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const entry of readdirSync(join(process.cwd(), room), { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || !endings.test(entry.name)) continue;
    const file = join(entry.parentPath, entry.name);
    for (const [name] of readFileSync(file, 'utf8').matchAll(NAME)) found.set(name, file);
  }
  return found;
}

test('docs/configuration.md has every variable that the code reads, and every flag of osl serve', (t) => {
  const read = new Map(ROOMS.flatMap((room) => [...namesIn(room, /\.(ts|js)$/)]));
  t.ok(read.size > 30);
  for (const [name, file] of read)
    t.ok(
      documented.has(name),
      `${name} of ${file}: say in test/docs/configuration.ts what it does, then ${AGAIN}`,
    );
  for (const name of documented.keys()) t.ok(read.has(name), `${name} is read`);
  t.ok(serveOptions().length > 5);
  if (process.env['OSL_WRITE_DOCS'] === '1') writeFileSync(PAGE, page());
  t.equal(readFileSync(PAGE, 'utf8'), page(), `run ${AGAIN}`);
  t.end();
});

test('what is said of each variable is so', (t) => {
  const read = new Set<string>();
  const recorder = new Proxy<Record<string, string | undefined>>(
    {},
    { get: (_none, name) => void (typeof name === 'string' && read.add(name)) },
  );
  const unset = settingsFrom(recorder, '/');
  for (const name of read) {
    if (name.startsWith('OTEL_')) continue; // OpenTelemetry's own: docs/operations.md, "Traces"
    const { takes, default: value } = documented.get(name) ?? {};
    if (takes === undefined) t.ok(saidOf(name), `${name}: the code says what it takes`);
    if (value !== undefined)
      t.strictSame(settingsFrom({ [name]: value }, '/'), unset, `${name}=${value} is as none`);
  }
  t.end();
});

test('no other page names a variable that there is not', (t) => {
  for (const [name, file] of namesIn('docs', /\.md$/))
    t.ok(documented.has(name) || OF_TESTS.test(name) || OF_READERS.test(name), `${name} in ${file}`);
  t.end();
});
