import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import t, { test } from 'tap';
import { program } from '../../../cli/program.js';
import { EXAMPLE, osl, temporary } from './support.js';

t.setTimeout(600_000);

/** Commands without `--json`, and why. */
const WITHOUT: ReadonlyMap<string, string> = new Map([
  ['policy show', 'it prints the text of a policy'],
  ['top', 'it draws anew; `osl ps --json` has the same figures'],
  ['login', 'a person goes on in a browser'],
  ['logout', 'it takes away what is stored, and says so'],
  ['keys make', 'it writes files, and says where'],
  ['receipt export', 'it writes files, and says where'],
  ['audit table', 'it prints SQL'],
  ['audit witness-table', 'it prints SQL'],
  ['audit export', 'its formats are others'],
  ['psql', 'what follows is for psql, which has formats of its own'],
  ['mcp', 'it speaks JSON-RPC on standard output'],
  ['lsp', 'it speaks JSON-RPC on standard output'],
  ['completion', 'it prints a script'],
]);

function leaves(command: Command, path: readonly string[] = []): readonly (readonly [string, Command])[] {
  if (command.commands.length === 0) return [[path.join(' '), command]];
  return command.commands.flatMap((c) => leaves(c, [...path, c.name()]));
}

test('every command has --json, or a reason', async (t) => {
  const all = leaves(await program());
  t.ok(all.length > 20, `${all.length} commands`);
  for (const [name, command] of all) {
    const json = command.options.some((option) => option.long === '--json');
    t.equal(json, !WITHOUT.has(name), WITHOUT.get(name) ?? `${name} --json`);
  }
  const names = new Set(all.map(([name]) => name));
  for (const name of WITHOUT.keys()) t.ok(names.has(name), `${name} is still a command`);
});

test('with --json an error is one object on standard error, and standard output stays clean', async (t) => {
  const dir = temporary();
  const nothing = ['--data-dir', dir];
  const cases: readonly (readonly [args: readonly string[], exit: number, message: RegExp])[] = [
    [['query', '--json', ...nothing, 'select 1'], 3, /^no server runs in/],
    [['schema', '--json', ...nothing], 3, /^no server runs in/],
    [['token', '--json', ...nothing, '--subject', 'x'], 2, /^there are no keys in/],
    [['errors', '--json', 'E0000'], 2, /^there is no error code/],
    [['serve', '--json', '--http-port', 'x'], 2, /must be a whole number/],
    [['audit', 'verify', '--json', ...nothing], 2, /./],
    [['discover', '--json', '--url', 'postgres://nobody@127.0.0.1:1/x'], 2, /./],
    [
      ['init', dir, '--json', '--yes', '--url', 'postgres://nobody@127.0.0.1:1/x'],
      2,
      /nothing listens there$/,
    ],
    [['nothing', '--json'], 2, /^unknown command 'nothing'/],
    [['scram', '--json'], 1, /at least 12 characters$/],
  ];
  const seen = await Promise.all(cases.map(([args]) => osl(args)));
  for (const [i, [args, exit, message]] of cases.entries()) {
    const run = seen[i];
    const name = args.join(' ');
    t.equal(run?.code, exit, name);
    t.equal(run?.stdout, '', name);
    const { error, ...rest } = JSON.parse(run?.stderr ?? '');
    t.strictSame(rest, {}, name);
    t.match(error, { message, exit }, name);
    t.ok('hint' in error, name);
  }
});

interface Region {
  readonly startLine: number;
  readonly startColumn: number;
  readonly endLine: number;
  readonly endColumn: number;
}

test('osl validate --sarif', async (t) => {
  const dir = temporary();
  const manifest = join(dir, 'käse & co.yaml');
  const text = readFileSync(join(EXAMPLE, 'manifest.yaml'), 'utf8')
    .replace('path: { type: text }', 'path: { type: txt }')
    .replace('primary_key: [path]', 'primary_key: [pth]');
  writeFileSync(manifest, text);
  const args = ['--manifest', manifest, '--policy', join(EXAMPLE, 'policy.yaml')];
  const [sarif, json] = await Promise.all([
    osl(['validate', '--sarif', ...args]),
    osl(['validate', '--json', ...args]),
  ]);
  t.equal(sarif.code, 2, sarif.stderr);
  const log = JSON.parse(sarif.stdout);
  t.equal(log.version, '2.1.0');
  t.match(log.$schema, /sarif-2\.1\.0\.json$/);
  t.equal(log.runs.length, 1);
  const [run] = log.runs;
  const { driver } = run.tool;
  t.equal(driver.name, 'osl');
  t.equal(run.columnKind, 'utf16CodeUnits');
  const ids: string[] = driver.rules.map((r: { id: string }) => r.id);
  t.equal(new Set(ids).size, ids.length, 'rules have ids of their own');
  const { diagnostics } = JSON.parse(json.stdout);
  t.equal(run.results.length, diagnostics.length);
  t.ok(run.results.length >= 2);
  for (const [i, result] of run.results.entries()) {
    const d = diagnostics[i];
    t.equal(result.ruleId, d.code);
    t.equal(ids[result.ruleIndex], result.ruleId);
    t.ok(['none', 'note', 'warning', 'error'].includes(result.level));
    t.equal(result.level, d.severity);
    t.ok(result.message.text.startsWith(d.message));
    t.strictSame(result.properties, { path: d.path, hint: d.hint });
    const [{ physicalLocation, logicalLocations }] = result.locations;
    t.equal(new URL(physicalLocation.artifactLocation.uri).protocol, 'file:');
    t.equal(decodeURIComponent(new URL(physicalLocation.artifactLocation.uri).pathname), manifest);
    t.equal(logicalLocations[0].fullyQualifiedName, d.path);
    const region: Region = physicalLocation.region;
    for (const place of Object.values(region)) t.ok(Number.isInteger(place) && place >= 1);
    t.equal(
      text.split('\n')[region.startLine - 1]?.slice(region.startColumn - 1, region.endColumn - 1),
      WORDS[i],
    );
    t.match(result.partialFingerprints, { 'osl/v1': /^[0-9a-f]{32}$/ });
  }
  const good = await osl(['validate', '--sarif', '--manifest', join(EXAMPLE, 'manifest.yaml')]);
  t.equal(good.code, 0, good.stderr);
  t.strictSame(JSON.parse(good.stdout).runs[0].results, []);
  const near = await osl(
    ['validate', '--sarif', '--manifest', 'käse & co.yaml', '--policy', join(EXAMPLE, 'policy.yaml')],
    {
      cwd: dir,
    },
  );
  const [first] = JSON.parse(near.stdout).runs[0].results;
  t.equal(first.locations[0].physicalLocation.artifactLocation.uri, 'k%C3%A4se%20%26%20co.yaml');
});

/** What each region of the file marks. */
const WORDS = ['txt', 'pth'];
